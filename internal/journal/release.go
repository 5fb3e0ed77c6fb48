package journal

import (
	"errors"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// ErrOfMember reports that a journal belongs to a cluster member. The cluster continues
// without it, so a single server with this journal would hand out jobs and ids a second
// time. [Release] converts it into a single server's journal.
var ErrOfMember = errors.New("the journal belongs to a cluster member")

// Release converts a member's journal that no server uses, for example a copy, into a
// single server's journal. It makes the names of the files durable and reads the whole
// journal.
func Release(fsys vfs.FS, dir string) (report wal.Report, err error) {
	if err := fsys.SyncDir(dir); err != nil {
		return report, fmt.Errorf("journal: %w", err)
	}
	report, last, err := ReadApplied(fsys, dir)
	if err != nil || last == (Applied{}) {
		return report, err
	}
	return report, SetApplied(fsys, dir, Applied{})
}

// SetApplied appends an Applied record to a journal that no server uses.
func SetApplied(fsys vfs.FS, dir string, at Applied) error {
	files, err := wal.Open(fsys, dir, wal.Options{SegmentSize: wal.MinSegmentSize})
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	skip := func([]wal.Record) (any, error) { return nil, nil }
	if _, err = wal.Replay(files, skip, func(any) error { return nil }); err == nil {
		c := at.Change()
		_, err = files.Append(record.Append(nil, &c, 0), c.Body)
	}
	return wrap(errors.Join(err, files.Close())) // Close also syncs
}

// ReadApplied reads a journal and returns its last Applied. It is zero if the journal is
// not a member's.
func ReadApplied(fsys vfs.FS, dir string) (report wal.Report, last Applied, err error) {
	report, err = Records(fsys, dir, func(_ wal.Pos, c *engine.Change) error {
		if c.Kind == record.AppliedMark {
			last, _ = record.DecodeApplied(c.Body)
		}
		return nil
	})
	return report, last, err
}
