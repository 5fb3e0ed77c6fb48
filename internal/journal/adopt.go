package journal

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/beanpole-mq/beanpole/internal/binlog"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// Taking over the files of a beanstalkd:
//
//  1. a record says that the adoption has begun;
//  2. their records are restored, and every job is written whole;
//  3. a record says that the adoption is done, and all is made durable;
//  4. their files get other names, so that neither server looks at them again.
//
// A crash before 3 leaves a journal that knows some of the jobs. Nobody was
// served yet, so to begin again from their files gives the same jobs. A crash
// in 4 leaves files that have only to be renamed.

// An adoption is how far that has come.
type adoption engine.ChangeKind

// Kinds of changes that only the journal knows.
const (
	adoptionBegun engine.ChangeKind = 0x80 + kindAdoptionBegun
	adoptionDone  engine.ChangeKind = 0x80 + kindAdoptionDone
)

// adoptedPrefix goes before the names of files that were taken over.
const adoptedPrefix = "beanstalkd-"

var errMixed = errors.New("the directory has files of beanstalkd (binlog.*) beside a journal that does not stem from them: " +
	"move the one or the other away")

// adopt takes over beanstalkd's files if there are any. what is how far that
// had come before; hasRecords says that there was a journal at all.
func (j *Journal) adopt(what adoption, hasRecords bool) (*binlog.Report, error) {
	theirs, err := binlog.Files(j.fs, j.dir)
	if err != nil || len(theirs) == 0 {
		return nil, err
	}
	if what == adoption(adoptionDone) {
		return nil, j.setAside(theirs)
	}
	if hasRecords && what != adoption(adoptionBegun) {
		return nil, errMixed
	}
	report, err := binlog.Read(j.fs, j.dir, binlog.Options{Epoch: j.opt.Epoch}, func(c engine.Change) error {
		j.eng.Restore(c)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("take over beanstalkd's files: %w", err)
	}
	if err := j.writeAll(); err != nil {
		return nil, fmt.Errorf("take over beanstalkd's files: %w", err)
	}
	return &report, j.setAside(theirs)
}

// writeAll writes everything that the engine has, and makes it durable.
func (j *Journal) writeAll() error {
	if _, err := j.append(&engine.Change{Kind: adoptionBegun}); err != nil {
		return err
	}
	for c := range j.eng.Snapshots {
		at, err := j.append(&c)
		if err != nil {
			return err
		}
		j.eng.SetMark(c.ID, uint32(at.Segment))
		if j.cleaner.appended > 1<<20 {
			j.cleaner.appended = 0
			if err := j.files.Flush(); err != nil {
				return err
			}
		}
	}
	if _, err := j.append(&engine.Change{Kind: engine.LastID, ID: j.eng.LastID()}); err != nil {
		return err
	}
	if _, err := j.append(&engine.Change{Kind: adoptionDone}); err != nil {
		return err
	}
	j.cleaner.appended = 0
	j.dirty = false
	if err := j.files.Flush(); err != nil {
		return err
	}
	return j.files.Sync()
}

// setAside renames files that are not needed any more.
func (j *Journal) setAside(names []string) error {
	for _, name := range names {
		if err := j.fs.Rename(filepath.Join(j.dir, name), filepath.Join(j.dir, adoptedPrefix+name)); err != nil {
			return err
		}
	}
	return j.fs.SyncDir(j.dir)
}
