package journal

import (
	"errors"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// ErrOfMember means that a journal has what the members of a cluster have agreed on. The
// cluster goes on without it: who serves its jobs as a single server does them twice, and
// gives ids twice. [Release] makes it a journal of its own.
var ErrOfMember = errors.New("the journal is that of a member of a cluster")

// Release makes a journal that nobody uses, a copy for example, one that a single server
// can open, if it is that of a member. It makes the names of its files durable, and reads
// all of it.
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

// SetApplied makes a journal that nobody uses say that it has every change of the entries
// of a cluster's log up to one.
func SetApplied(fsys vfs.FS, dir string, at Applied) error {
	files, err := wal.Open(fsys, dir, wal.Options{SegmentSize: wal.MinSegmentSize})
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if _, err = wal.Replay(files, skip, func(Applied) error { return nil }); err == nil {
		c := at.Change()
		_, err = files.Append(record.Append(nil, &c, 0), c.Body)
	}
	return wrap(errors.Join(err, files.Close())) // which syncs
}

func skip([]wal.Record) (Applied, error) { return Applied{}, nil }

// ReadApplied reads a journal, and returns up to which entry of a cluster's log it has
// every fact, as it says itself. It is the zero Applied if it is not that of a member.
func ReadApplied(fsys vfs.FS, dir string) (report wal.Report, last Applied, err error) {
	files, err := openForReading(fsys, dir)
	if err != nil {
		return report, last, err
	}
	defer files.Close()
	report, err = wal.Replay(files, lastApplied, func(at *Applied) error {
		if at != nil {
			last = *at
		}
		return nil
	})
	return report, last, wrap(err)
}

// lastApplied returns the last Applied of some records; nil if there is none.
func lastApplied(records []wal.Record) (last *Applied, err error) {
	for _, r := range records {
		if !record.IsApplied(r.Payload) {
			continue
		}
		c, err := record.Decode(r.Payload, 0, nil)
		if err != nil {
			return nil, fmt.Errorf("segment %d at %d: %w", r.Segment, r.Offset, err)
		}
		at, _ := record.DecodeApplied(c.Body)
		last = &at
	}
	return last, nil
}
