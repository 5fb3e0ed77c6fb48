package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/binlog"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// Open imports beanstalkd files if there is no journal:
//
//  1. it creates the file beanpole.adopting;
//  2. it writes every job to the journal and makes the journal durable;
//  3. it renames beanpole.adopting to beanpole.adopted: from now on, the journal is valid;
//  4. it renames the beanstalkd files, so that no server reads them again;
//  5. it removes beanpole.adopted.
//
// No client is served before the import is complete. After a crash, a start that finds
// beanpole.adopting repeats 2, and removes the segments of the incomplete journal; the
// beanstalkd files are unchanged. A start that finds beanpole.adopted continues at 4. At
// any other time, beanstalkd files next to a journal come from a beanstalkd that was
// started there later, and Open returns an error.
const (
	adopting = "beanpole.adopting"
	adopted  = "beanpole.adopted"
)

// adoptedPrefix is the prefix that imported beanstalkd files get.
const adoptedPrefix = "beanstalkd-"

// ErrMixed reports beanstalkd files next to a journal that has not imported them. An
// operator must choose between the two.
var ErrMixed = errors.New("beanstalkd files (binlog.*) next to a journal that has not imported them")

// ErrAdopting reports that the import of beanstalkd files was interrupted: the journal is
// incomplete, and the next start of a server repeats the import.
var ErrAdopting = errors.New("the import of the beanstalkd files (binlog.*) was interrupted")

// CheckAdoption returns an error that wraps ErrAdopting if an import in the directory was
// interrupted before its journal was complete.
func CheckAdoption(fsys vfs.FS, dir string) error {
	if there, err := vfs.Exists(fsys, filepath.Join(dir, adopting)); !there {
		return err
	}
	return ErrAdopting
}

// Adopted reports whether the journal has imported the beanstalkd files that are still in
// the directory; the next start renames them.
func Adopted(fsys vfs.FS, dir string) (bool, error) {
	return vfs.Exists(fsys, filepath.Join(dir, adopted))
}

// adopt imports the beanstalkd files, or completes an earlier import. The report is nil
// if it read no file. isNew reports whether the journal is empty, and interrupted whether
// it is the incomplete journal of an import.
func (j *Journal) adopt(isNew, interrupted bool) (*binlog.Report, error) {
	files, err := binlog.Files(j.fs, j.dir)
	if err != nil {
		return nil, err
	}
	done, err := Adopted(j.fs, j.dir)
	var report *binlog.Report
	switch {
	case err != nil:
		return nil, err
	case interrupted && len(files) == 0:
		return nil, fmt.Errorf("%w, and the files are missing", ErrAdopting)
	case done:
	case len(files) > 0 && (!isNew && !interrupted || j.opt.Member): // the other members would not have the jobs
		return nil, ErrMixed
	case len(files) > 0:
		if report, err = j.convert(); err != nil {
			return nil, fmt.Errorf("import beanstalkd files: %w", err)
		}
	default:
		return nil, nil
	}
	if err := j.renameAdopted(files); err != nil {
		return nil, err
	}
	return report, cmp.Or(j.fs.Remove(filepath.Join(j.dir, adopted)), j.fs.SyncDir(j.dir))
}

// convert writes the jobs of the beanstalkd files to the journal, which contains no other
// jobs. It makes the journal durable, regardless of Options.Sync.
func (j *Journal) convert() (*binlog.Report, error) {
	marker := filepath.Join(j.dir, adopting)
	if err := vfs.WriteFile(j.fs, marker, nil); err != nil && !errors.Is(err, fs.ErrExist) {
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
	j.indexJobs()
	err = j.space.fill()
	for j.Rewrite(); err == nil && j.rewrite != nil; { // in pieces, to save memory
		err = cmp.Or(j.rewrite.advance(j.opt.SegmentSize), j.files.Flush(), j.files.Sync())
	}
	if err != nil {
		return nil, err
	}
	j.dirty = false
	if err := j.fs.Rename(marker, filepath.Join(j.dir, adopted)); err != nil {
		return nil, err
	}
	return &report, j.fs.SyncDir(j.dir)
}

// renameAdopted renames the beanstalkd files and makes their new names durable. It does
// not replace files: if a name exists, it adds a number.
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
		j.log.Info("renamed an imported beanstalkd file", "from", name, "to", newName)
	}
	return j.fs.SyncDir(j.dir)
}

// freeName returns name or, if it is taken, name.2, name.3 ...
func freeName(name string, there []string) string {
	free := name
	for n := 2; slices.Contains(there, free); n++ {
		free = name + "." + strconv.Itoa(n)
	}
	return free
}
