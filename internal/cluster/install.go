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

// A snapshot is stored as the files of a journal, next to the member's own journal but
// with other names (staged). When all files are durable, the commit marker is written.
// The log determines whether the snapshot is installed: if the log was cut at the end of
// the snapshot, the staged files replace the member's journal. Therefore, the member has
// one queue or the other after a crash:
//
//	crash before                              the next start
//	the marker is written                     removes the staged files
//	the log is durably cut at the snapshot    removes the marker, then the staged files
//	the last old file is removed              removes the old files: the whole snapshot is staged
//	the marker is removed                     renames the files still staged, removes the marker
//
// settleSnapshot does the work of such a start. It is also called to install a snapshot.

// staged is a file system in which the journal's files have other names.
type staged struct{ vfs.FS }

const stagedSuffix = ".new"

func (s staged) Create(name string) (vfs.File, error) { return s.FS.Create(name + stagedSuffix) }
func (s staged) Open(name string) (vfs.File, error)   { return s.FS.Open(name + stagedSuffix) }

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

// A commitMarker records the end of a snapshot and the number of its files.
type commitMarker struct {
	raftlog.Position
	Files int
}

func markerFile(dir string) string { return filepath.Join(dir, "cluster", "snapshot") }

// commitSnapshot writes the commit marker, which states that the staged files are a
// snapshot up to the entry at.
func commitSnapshot(fsys vfs.FS, dir string, at raftlog.Position) error {
	names, err := staged{fsys}.List(dir)
	if err != nil {
		return err
	}
	text, err := json.Marshal(commitMarker{at, len(names)})
	if err != nil {
		return err
	}
	name := markerFile(dir)
	if err := vfs.WriteFile(fsys, name+stagedSuffix, text); err != nil {
		return err
	}
	if err := fsys.Rename(name+stagedSuffix, name); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(name))
}

// readMarker returns the commit marker in a directory, or nil if there is none.
func readMarker(fsys vfs.FS, dir string) (*commitMarker, error) {
	text, err := vfs.ReadFile(fsys, markerFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := new(commitMarker)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%w: the commit marker of a snapshot: %w", ErrDamaged, err)
	}
	return s, nil
}

// removeMarker durably removes the commit marker.
func removeMarker(fsys vfs.FS, dir string) error {
	for _, name := range []string{markerFile(dir), markerFile(dir) + stagedSuffix} {
		if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fsys.SyncDir(filepath.Dir(markerFile(dir)))
}

// dropSnapshot removes a snapshot that will not be installed. It removes the marker
// first, because a marker without all its files would be wrong.
func dropSnapshot(fsys vfs.FS, dir string) error {
	if err := removeMarker(fsys, dir); err != nil {
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

// settleSnapshot installs the snapshot in a directory if the log starts at the end of the
// snapshot, and removes it otherwise. The journal must not be in use. If it fails,
// another call completes the rest.
func settleSnapshot(fsys vfs.FS, dir string, cut raftlog.Position) error {
	s, err := readMarker(fsys, dir)
	if err == nil && (s == nil || s.Position != cut) {
		err = dropSnapshot(fsys, dir)
	} else if err == nil {
		err = installSnapshot(fsys, dir, s.Files)
	}
	if err != nil {
		return fmt.Errorf("cluster: install the snapshot: %w", err)
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
	return removeMarker(fsys, dir)
}

// RemoveJournal durably removes the files of the journal in a directory. It keeps the
// files of a snapshot.
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
