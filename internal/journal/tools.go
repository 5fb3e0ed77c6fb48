package journal

import (
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// These functions are for tools. They neither lock the directory nor change it. If a
// server uses the directory, they can miss its newest records.

// Load reads the journal in a directory into an empty engine. The error wraps ErrAdopting
// if the journal is incomplete.
func Load(fsys vfs.FS, dir string, eng *engine.Engine, epoch int64) (Report, error) {
	var report Report
	files, err := openForReading(fsys, dir)
	if err != nil {
		return report, err
	}
	defer files.Close()
	var r replayer
	if report.Report, err = r.replay(files, eng, epoch); err != nil {
		return report, fmt.Errorf("journal: %w", err)
	}
	st := eng.Stats()
	report.Jobs = int(st.Ready + st.Delayed + st.Buried)
	return report, nil
}

// Records calls f for every record of the journal in a directory, in order. Times count
// from 1970.
func Records(fsys vfs.FS, dir string, f func(at wal.Pos, c *engine.Change) error) (wal.Report, error) {
	files, err := openForReading(fsys, dir)
	if err != nil {
		return wal.Report{}, err
	}
	defer files.Close()
	tubes := make(map[string]string)
	report, err := wal.Replay(files,
		func(records []wal.Record) ([]wal.Record, error) { return records, nil },
		func(records []wal.Record) error {
			for _, rec := range records {
				c, err := record.Decode(rec.Payload, 0, tubes)
				if err != nil {
					return fmt.Errorf("segment %d at %d: %w", rec.Segment, rec.Offset, err)
				}
				if err := f(rec.Pos, &c); err != nil {
					return err
				}
			}
			return nil
		})
	return report, wrap(err)
}

// wrap adds the package name to an error.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("journal: %w", err)
}

func openForReading(fsys vfs.FS, dir string) (*wal.Log, error) {
	if err := CheckAdoption(fsys, dir); err != nil {
		return nil, wrap(err)
	}
	files, err := wal.Open(fsys, dir, wal.Options{ReadOnly: true})
	return files, wrap(err)
}
