package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// checkJournal returns an error unless a server has used dir or it contains segments.
func checkJournal(dir string) error {
	names, err := vfs.OS.List(dir)
	if err != nil {
		return exit.WithCode(exit.Journal, err)
	}
	if slices.ContainsFunc(names, func(name string) bool { return name == "lock" || wal.IsFileName(name) }) {
		return nil
	}
	return fmt.Errorf("directory %s contains no journal", dir)
}

// makeEmpty creates a directory if it does not exist. An existing directory must be
// empty, except for the lock file of a server or an earlier attempt.
func makeEmpty(dir string) (made bool, err error) {
	err = vfs.OS.Mkdir(dir)
	if !errors.Is(err, fs.ErrExist) {
		return err == nil, exit.WithCode(exit.Journal, err)
	}
	names, err := vfs.OS.List(dir)
	if i := slices.IndexFunc(names, func(name string) bool { return name != "lock" }); i >= 0 {
		err = fmt.Errorf("directory %s: it is not empty (%s)", dir, names[i])
	}
	return false, exit.WithCode(exit.Journal, err)
}

// fillEmpty calls makeEmpty, and then fill to write a journal, or beanstalkd files. If
// fill fails, it removes the files and directories that it has created.
func fillEmpty(dir string, fill func() error) error {
	made, err := makeEmpty(dir)
	if err != nil {
		return err
	}
	if err = fill(); err == nil {
		return nil
	}
	undone := removeFiles(dir)
	if undone == nil && made {
		undone = os.Remove(dir)
	}
	return errors.Join(err, undone)
}

// removeFiles removes the files of an unfinished copy.
func removeFiles(dir string) error {
	names, err := vfs.OS.List(dir)
	for _, name := range names {
		if !wal.IsFileName(name) && !strings.HasPrefix(name, "binlog.") {
			continue
		}
		if err := vfs.OS.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}
