package journal

import (
	"cmp"
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
//  3. a record says that the adoption is done; all is made durable;
//  4. their files get other names, so that neither server looks at them again;
//  5. a record says that the adoption is over; it is made durable.
//
// No client is served before 5. After a crash before 3 the next start deletes the jobs
// that are there and begins again from the files. After one in 4 it renames the rest.
// Files that are found at any other time are those of a beanstalkd that was started there
// later; about them only a person can decide.

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

// An adoption takes over the files of a beanstalkd, while a journal is opened.
type adoption struct {
	j     *Journal
	state engine.ChangeKind // the last record of one that is not over; 0: none
	files []string          // names of those to be taken over, or to be renamed if state says that it is done
}

// find finds the files of beanstalkd. hasRecords says that there is a journal.
func (a *adoption) find(hasRecords bool) (err error) {
	a.files, err = binlog.Files(a.j.fs, a.j.dir)
	switch {
	case err != nil:
		return err
	case a.state == record.AdoptionBegun && len(a.files) == 0:
		return ErrUnfinished
	case a.state == 0 && len(a.files) > 0 && (hasRecords || a.j.opt.Member): // other members would not have the jobs
		return &MixedError{a.files}
	}
	return nil
}

// takeOver takes the jobs of beanstalkd's files into the journal, which has none.
func (a *adoption) takeOver() (*binlog.Report, error) {
	j := a.j
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
		if err = a.appendJob(c); err != nil {
			return nil, err
		}
	}
	if _, err := j.append(&engine.Change{Kind: engine.LastID, ID: j.eng.LastID()}); err != nil {
		return nil, err
	}
	return &report, a.makeDurable(record.AdoptionDone)
}

// appendJob appends a job that is in the engine and not in the log. It flushes now and
// then, so that little stays in memory.
func (a *adoption) appendJob(c engine.Change) error {
	j := a.j
	if err := j.space.reserve(engine.JobPut, cost(engine.JobPut, len(c.Tube), len(c.Body))); err != nil {
		return err
	}
	if err := j.Append([]engine.Change{c}); err != nil {
		return err
	}
	if j.cleaner.appended < 1<<20 {
		return nil
	}
	j.cleaner.appended = 0
	return j.files.Flush()
}

// makeDurable appends a record of the adoption and makes all durable, whatever
// Options.Sync says.
func (a *adoption) makeDurable(kind engine.ChangeKind) error {
	j := a.j
	if _, err := j.append(&engine.Change{Kind: kind}); err != nil {
		return err
	}
	j.cleaner.appended = 0
	j.dirty = false
	return cmp.Or(j.files.Flush(), j.files.Sync())
}

// deleteAll deletes all jobs: those of an adoption that was not done.
func (a *adoption) deleteAll() error {
	j := a.j
	for _, c := range deletions(j.eng) {
		if err := j.space.reserveDeletion(); err != nil {
			return err
		}
		j.eng.Restore(c)
		if err := j.Append([]engine.Change{c}); err != nil {
			return err
		}
	}
	return nil
}

// deletions returns the deletions of all jobs.
func deletions(eng *engine.Engine) (gone []engine.Change) {
	for c := range eng.Snapshots {
		c.Kind, c.Body = engine.JobDeleted, nil
		gone = append(gone, c)
	}
	return gone
}

// setAside renames files that were taken over, and ends the adoption. It replaces no
// file: if there is one with the new name, of an earlier beanstalkd, it adds a number.
func (a *adoption) setAside() error {
	j := a.j
	there, err := j.fs.List(j.dir)
	if err != nil {
		return err
	}
	for _, name := range a.files {
		aside := freeName(adoptedPrefix+name, there)
		if err := j.fs.Rename(filepath.Join(j.dir, name), filepath.Join(j.dir, aside)); err != nil {
			return err
		}
		there = append(there, aside)
		j.log.Info("a file of beanstalkd was taken over and is not needed any more", "was", name, "is", aside)
	}
	if err := j.fs.SyncDir(j.dir); err != nil {
		return err
	}
	return a.makeDurable(record.AdoptionOver)
}

// freeName returns name or, if that is among those there, name.2, name.3 ...
func freeName(name string, there []string) string {
	free := name
	for n := 2; slices.Contains(there, free); n++ {
		free = name + "." + strconv.Itoa(n)
	}
	return free
}
