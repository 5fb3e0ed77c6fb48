package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/binlog"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
)

// Taking over the files of a beanstalkd:
//
//  1. a record says that the adoption has begun;
//  2. their records are restored, and every job is written whole;
//  3. a record says that the adoption is done, and of which files; all is made
//     durable;
//  4. their files get other names, so that neither server looks at them again.
//
// A crash before 3 leaves a journal with some of the jobs. The next start deletes them
// and begins again from the files: no client was served yet. A crash in 4 leaves files
// that have only to be renamed. The record of 3 distinguishes them from the files of a
// beanstalkd that was started there later; about those only a person can decide.

// begun is a transfer that was begun and not done when the last process ended.
type begun struct {
	kind engine.ChangeKind // record.AdoptionBegun, record.MergeBegun or 0
	last uint64            // the highest id before
}

// adoptedPrefix goes before the names of files that were taken over.
const adoptedPrefix = "beanstalkd-"

// A MixedError says that there are files of beanstalkd beside a journal that has not
// taken them over. A person must decide which of the two counts.
type MixedError struct{ Files []string } // their names, without the path

func (e *MixedError) Error() string {
	return fmt.Sprintf("there are files of beanstalkd (%s) beside a journal that has not taken them over", abbreviate(e.Files))
}

// abbreviate lists the first few names.
func abbreviate(names []string) string {
	const few = 3
	if more := len(names) - few; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), more)
	}
	return strings.Join(names, ", ")
}

// ErrUnfinished is wrapped when the files of beanstalkd are gone before their
// taking over was done.
var ErrUnfinished = errors.New("the taking over of beanstalkd's files (binlog.*) was interrupted, and they are not there any more")

// binlogFiles returns the names of beanstalkd's files. takeOver says that they have to
// be taken over; if it is false they were. hasRecords says that there is a journal. It
// changes nothing.
func (j *Journal) binlogFiles(b begun, hasRecords bool) (names []string, takeOver bool, err error) {
	names, err = binlog.Files(j.fs, j.dir)
	switch {
	case err != nil:
		return nil, false, err
	case b.kind == record.AdoptionBegun && len(names) == 0:
		return nil, false, ErrUnfinished
	case b.kind == record.AdoptionBegun || !hasRecords || len(names) == 0:
		return names, len(names) > 0, nil
	}
	// They must be those that were taken over.
	var known []record.File
	for _, t := range j.transfers {
		known = append(known, t.files...)
	}
	others, err := NotAdopted(j.fs, j.dir, known)
	if err == nil && len(others) > 0 {
		err = &MixedError{others}
	}
	return names, false, err
}

// undoBegun undoes a transfer that the last process has begun and not done. It comes
// before reserveMissing, so that it finds room on a full disk.
func (j *Journal) undoBegun(b begun) error {
	switch b.kind {
	case record.AdoptionBegun:
		return j.undo(0)
	case record.MergeBegun:
		return j.undoMerge(b.last)
	}
	return nil
}

// takeOver takes the jobs of beanstalkd's files into the journal, which has none.
func (j *Journal) takeOver(theirs []string) (*binlog.Report, error) {
	files, err := identifyAll(j.fs, j.dir, theirs)
	if err != nil {
		return nil, err
	}
	report, err := binlog.Read(j.fs, j.dir, binlog.Options{Epoch: j.opt.Epoch}, func(c engine.Change) error {
		j.eng.Restore(c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if _, err := j.append(&engine.Change{Kind: record.AdoptionBegun}); err != nil {
		return nil, err
	}
	for c := range j.eng.Snapshots {
		if err = j.appendJob(c); err != nil {
			return nil, err
		}
	}
	return &report, j.endTransfer(record.AdoptionDone, files)
}

// appendJob appends a job that is in the engine and not in the log. It flushes now and
// then, so that little stays in memory.
func (j *Journal) appendJob(c engine.Change) error {
	if err := j.reserve(engine.JobPut, cost(engine.JobPut, len(c.Tube), len(c.Body))); err != nil {
		return err
	}
	if err := j.Append([]engine.Change{c}); err != nil {
		return err
	}
	if j.cleaner.appended < 1<<20 {
		return nil
	}
	j.cleaner.appended = 0
	err := j.files.Flush()
	j.trimRecent()
	return err
}

// endTransfer appends the last id and the record that the transfer is done, and makes
// all durable.
func (j *Journal) endTransfer(kind engine.ChangeKind, files []record.File) error {
	if _, err := j.append(&engine.Change{Kind: engine.LastID, ID: j.eng.LastID()}); err != nil {
		return err
	}
	t := newTransfer(kind, j.opt.Epoch, files, 0)
	c := t.change()
	at, err := j.append(&c)
	if err != nil {
		return err
	}
	t.segment = at.Segment
	j.transfers = append(j.transfers, t)
	return j.makeDurable()
}

// makeDurable makes what was appended durable, whatever Options.Sync says.
func (j *Journal) makeDurable() error {
	j.cleaner.appended = 0
	j.dirty = false
	if err := j.files.Flush(); err != nil {
		return err
	}
	if err := j.files.Sync(); err != nil {
		return err
	}
	j.trimRecent()
	return nil
}

// undo deletes all jobs with ids above last: those of a transfer that was not done.
func (j *Journal) undo(last uint64) error {
	for _, c := range above(j.eng, last) {
		if err := j.reserveDeletion(); err != nil {
			return err
		}
		j.eng.Restore(c)
		if err := j.Append([]engine.Change{c}); err != nil {
			return err
		}
	}
	return nil
}

// above returns the deletions of all jobs with ids above last.
func above(eng *engine.Engine, last uint64) (gone []engine.Change) {
	for c := range eng.Snapshots {
		if c.ID > last {
			c.Kind, c.Body = engine.JobDeleted, nil
			gone = append(gone, c)
		}
	}
	return gone
}

// setAside renames files that are not needed any more. It replaces no file: if there is
// one with the new name, of an earlier beanstalkd, it adds a number.
func (j *Journal) setAside(names []string) error {
	if len(names) == 0 {
		return nil
	}
	there, err := j.fs.List(j.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		aside := freeName(adoptedPrefix+name, there)
		if err := j.fs.Rename(filepath.Join(j.dir, name), filepath.Join(j.dir, aside)); err != nil {
			return err
		}
		there = append(there, aside)
		j.log.Info("a file of beanstalkd was taken over and is not needed any more", "was", name, "is", aside)
	}
	return j.fs.SyncDir(j.dir)
}

// freeName returns name or, if that is among those there, name.2, name.3 ...
func freeName(name string, there []string) string {
	free := name
	for n := 2; slices.Contains(there, free); n++ {
		free = name + "." + strconv.Itoa(n)
	}
	return free
}
