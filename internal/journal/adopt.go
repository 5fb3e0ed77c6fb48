package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/binlog"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// Open takes over the files of beanstalkd if there is no journal:
//
//  1. it creates the file beanpole.adopting;
//  2. it writes every job to the journal and makes the journal durable;
//  3. it renames beanpole.adopting to beanpole.adopted: from here on, the journal counts;
//  4. it renames the files of beanstalkd, so that no server reads them again;
//  5. it removes beanpole.adopted.
//
// No client is served before the end. After a crash, a start that finds beanpole.adopting
// removes the incomplete journal and starts again; the files of beanstalkd are unchanged.
// A start that finds beanpole.adopted continues at 4. At any other time, files of
// beanstalkd next to a journal come from a beanstalkd that was started there later: Open
// refuses them.
const (
	adopting = "beanpole.adopting"
	adopted  = "beanpole.adopted"
)

// adoptedPrefix is the prefix of the new names of beanstalkd's files.
const adoptedPrefix = "beanstalkd-"

// A MixedError reports files of beanstalkd next to a journal that has not taken them
// over. A person must choose between the two.
type MixedError struct{ Files []string } // their names, without the path

func (e *MixedError) Error() string {
	return fmt.Sprintf("files of beanstalkd (%s) next to a journal that has not taken them over", abbreviate(e.Files))
}

// abbreviate lists the first few names.
func abbreviate(names []string) string {
	const few = 3
	if more := len(names) - few; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), more)
	}
	return strings.Join(names, ", ")
}

// ErrAdopting reports that the takeover of beanstalkd's files was interrupted: the
// journal is incomplete, and the next start of a server repeats the takeover.
var ErrAdopting = errors.New("the takeover of beanstalkd's files (binlog.*) was interrupted")

// CheckAdoption returns an error that wraps ErrAdopting if a takeover in the directory
// was interrupted before its journal was complete.
func CheckAdoption(fsys vfs.FS, dir string) error {
	if there, err := exists(fsys, dir, adopting); !there {
		return err
	}
	return ErrAdopting
}

// Adopted reports whether the journal has taken over the files of beanstalkd that are
// still in the directory; the next start renames them.
func Adopted(fsys vfs.FS, dir string) (bool, error) { return exists(fsys, dir, adopted) }

func exists(fsys vfs.FS, dir, name string) (bool, error) {
	_, err := fsys.Size(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// discardIncomplete removes the journal of an interrupted takeover. If the files of
// beanstalkd are gone, it returns an error and changes nothing.
func discardIncomplete(fsys vfs.FS, dir string) error {
	err := CheckAdoption(fsys, dir)
	if !errors.Is(err, ErrAdopting) {
		return err
	}
	lock, err := fsys.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	if files, err := binlog.Files(fsys, dir); err != nil || len(files) == 0 {
		return cmp.Or(err, fmt.Errorf("%w, and the files are gone", ErrAdopting))
	}
	names, err := fsys.List(dir)
	for _, name := range names {
		if wal.IsFileName(name) {
			err = errors.Join(err, fsys.Remove(filepath.Join(dir, name)))
		}
	}
	return errors.Join(err, fsys.SyncDir(dir))
}

// adopt takes over the files of beanstalkd, or completes an earlier takeover. The report
// is nil if it read no file. isNew reports that the journal is empty.
func (j *Journal) adopt(isNew bool) (*binlog.Report, error) {
	files, err := binlog.Files(j.fs, j.dir)
	if err != nil {
		return nil, err
	}
	done, err := Adopted(j.fs, j.dir)
	var report *binlog.Report
	switch {
	case err != nil:
		return nil, err
	case done:
	case len(files) > 0 && (!isNew || j.opt.Member): // other members would not have the jobs
		return nil, &MixedError{files}
	case len(files) > 0:
		if report, err = j.convert(); err != nil {
			return nil, fmt.Errorf("take over beanstalkd's files: %w", err)
		}
	default:
		return nil, nil
	}
	if err := j.renameAdopted(files); err != nil {
		return nil, err
	}
	return report, cmp.Or(j.fs.Remove(filepath.Join(j.dir, adopted)), j.fs.SyncDir(j.dir))
}

// convert writes the jobs of beanstalkd's files to the journal, which is empty, and makes
// it durable, whatever Options.Sync is.
func (j *Journal) convert() (*binlog.Report, error) {
	marker := filepath.Join(j.dir, adopting)
	f, err := j.fs.Create(marker)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := j.fs.SyncDir(j.dir); err != nil {
		return nil, err
	}
	report, err := binlog.Read(j.fs, j.dir, binlog.Options{Epoch: j.opt.Epoch}, func(c engine.Change) error {
		j.eng.Restore(c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for c := range j.eng.Snapshots {
		if err := j.convertJob(c); err != nil {
			return nil, err
		}
	}
	if _, err := j.append(&engine.Change{Kind: engine.LastID, ID: j.eng.LastID()}); err != nil {
		return nil, err
	}
	j.cleaner.appended, j.dirty = 0, false
	if err := cmp.Or(j.files.Flush(), j.files.Sync()); err != nil {
		return nil, err
	}
	if err := j.fs.Rename(marker, filepath.Join(j.dir, adopted)); err != nil {
		return nil, err
	}
	return &report, j.fs.SyncDir(j.dir)
}

// convertJob appends a job of beanstalkd. It flushes each MiB, so that little stays in
// memory.
func (j *Journal) convertJob(c engine.Change) error {
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

// renameAdopted renames the files of beanstalkd and makes their new names durable. It
// replaces no file: it adds a number to a name that exists.
func (j *Journal) renameAdopted(files []string) error {
	there, err := j.fs.List(j.dir)
	if err != nil {
		return err
	}
	for _, name := range files {
		newName := freeName(adoptedPrefix+name, there)
		if err := j.fs.Rename(filepath.Join(j.dir, name), filepath.Join(j.dir, newName)); err != nil {
			return err
		}
		there = append(there, newName)
		j.log.Info("renamed a file of beanstalkd that was taken over", "from", name, "to", newName)
	}
	return j.fs.SyncDir(j.dir)
}

// freeName returns name or, if there is a file of that name, name.2, name.3 ...
func freeName(name string, there []string) string {
	free := name
	for n := 2; slices.Contains(there, free); n++ {
		free = name + "." + strconv.Itoa(n)
	}
	return free
}
