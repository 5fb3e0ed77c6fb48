package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// A snapshot on the disk is the files of a journal, beside those of the member's own, and
// with other names (staged). When all are durable a file says so, the seal. The log
// decides whether it is installed: if it is cut where the snapshot ends, the files take
// the place of the others. So after a crash the member has one queue or the other:
//
//	the crash comes                         the next start
//	before the seal                         removes the files
//	before the log is cut there, durably    removes the seal, then the files
//	before the last old file is removed     removes the old files: all of the snapshot are staged
//	before the seal is removed              renames those that are staged yet, removes the seal
//
// settleSnapshot is what a start does, and all that installing is.

// staged is a file system in which the files of a journal have another name.
type staged struct{ vfs.FS }

const stagedSuffix = ".new"

func (s staged) Create(name string) (vfs.File, error) { return s.FS.Create(name + stagedSuffix) }
func (s staged) Open(name string) (vfs.File, error)   { return s.FS.Open(name + stagedSuffix) }
func (s staged) Size(name string) (int64, error)      { return s.FS.Size(name + stagedSuffix) }

// List returns the names without the suffix.
func (s staged) List(dir string) ([]string, error) {
	all, err := s.FS.List(dir)
	var names []string
	for _, name := range all {
		if name, ok := strings.CutSuffix(name, stagedSuffix); ok && wal.IsFileName(name) {
			names = append(names, name)
		}
	}
	return names, err
}

// A seal says where a snapshot ends, and how many files it has.
type seal struct {
	raftlog.Position
	Files int
}

func sealFile(dir string) string { return filepath.Join(dir, "cluster", "snapshot") }

// sealSnapshot says that the staged files are a snapshot up to an entry.
func sealSnapshot(fsys vfs.FS, dir string, at raftlog.Position) error {
	names, err := staged{fsys}.List(dir)
	if err != nil {
		return err
	}
	text, err := json.Marshal(seal{at, len(names)})
	if err != nil {
		return err
	}
	name := sealFile(dir)
	f, err := fsys.Create(name + stagedSuffix)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text, 0)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(name+stagedSuffix, name); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(name))
}

// readSeal returns the seal of the snapshot in a directory; nil if there is none.
func readSeal(fsys vfs.FS, dir string) (*seal, error) {
	f, err := fsys.Open(sealFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	text, s := make([]byte, size), new(seal)
	if _, err := f.ReadAt(text, 0); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%w: the seal of a snapshot: %w", ErrDamaged, err)
	}
	return s, nil
}

// removeSeal removes the seal, durably.
func removeSeal(fsys vfs.FS, dir string) error {
	for _, name := range []string{sealFile(dir), sealFile(dir) + stagedSuffix} {
		if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fsys.SyncDir(filepath.Dir(sealFile(dir)))
}

// dropSnapshot removes a snapshot that is not to be installed: the seal first, since
// without all of the files it would be wrong.
func dropSnapshot(fsys vfs.FS, dir string) error {
	if err := removeSeal(fsys, dir); err != nil {
		return err
	}
	names, err := staged{fsys}.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := fsys.Remove(filepath.Join(dir, name) + stagedSuffix); err != nil {
			return err
		}
	}
	return fsys.SyncDir(dir)
}

// settleSnapshot installs the snapshot in a directory if the log begins where the snapshot
// ends, and removes it otherwise. The journal must not be in use. After an error the same
// call does the rest.
func settleSnapshot(fsys vfs.FS, dir string, cut raftlog.Position) error {
	s, err := readSeal(fsys, dir)
	if err == nil && (s == nil || s.Position != cut) {
		err = dropSnapshot(fsys, dir)
	} else if err == nil {
		err = installSnapshot(fsys, dir, s.Files)
	}
	if err != nil {
		return fmt.Errorf("cluster: the snapshot of another member: %w", err)
	}
	return nil
}

func installSnapshot(fsys vfs.FS, dir string, files int) error {
	names, err := staged{fsys}.List(dir)
	if err != nil {
		return err
	}
	if len(names) == files { // none was renamed
		if err := RemoveJournal(fsys, dir); err != nil {
			return err
		}
	}
	for _, name := range names {
		name = filepath.Join(dir, name)
		if err := fsys.Rename(name+stagedSuffix, name); err != nil {
			return err
		}
	}
	if err := fsys.SyncDir(dir); err != nil {
		return err
	}
	return removeSeal(fsys, dir)
}

// RemoveJournal removes the files of the journal in a directory, durably. The files of a
// snapshot stay.
func RemoveJournal(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, name := range slices.DeleteFunc(names, func(name string) bool { return !wal.IsFileName(name) }) {
		if err := fsys.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return fsys.SyncDir(dir)
}
