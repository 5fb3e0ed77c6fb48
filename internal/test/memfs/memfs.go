// Package memfs implements a file system in memory that simulates power failures.
//
//	fsys := memfs.New()
//	fsys.CutAt(17)             // cut the power before the 17th operation that changes something
//	work(fsys)                 // all later operations fail with ErrPowerCut
//	after := fsys.Crash(rng)   // the contents of the disk at the next start
//
// [FS.Crash] can also be called at any time on a file system in use, without affecting
// it. The result is drawn from all states that package vfs allows:
//
//   - Synced bytes, sizes and names are present.
//   - Each sector of 512 bytes has one of its contents since the sync, sometimes torn
//     within the sector. The size is one of the file's sizes since the sync.
//   - Each change of names since the directory's sync is present or missing.
//
// A limit on the space ([FS.SetLimit]) simulates a full disk. Space is counted in blocks
// of 4096 bytes that were written or preallocated. A file that Truncate has grown uses no
// space until it is written.
//
// Directories are durable as soon as they are created, because the package is for tests
// of files. Locks apply only within one FS. Start reading at crash.go.
package memfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// ErrPowerCut is the error of all operations after a power cut.
var ErrPowerCut = errors.New("memfs: power cut")

// An FS is a file system in memory. It contains the directories "/" and ".".
type FS struct {
	mu    sync.Mutex
	dirs  map[string]*dir
	locks map[*inode]bool
	limit int64 // in bytes; 0 means no limit
	used  int64 // total size of the blocks of all files that have a name or are open
	ops   int   // number of operations that changed data or names, or tried to
	cutAt int   // the power is cut before this operation; 0 means never
	cut   bool
}

// A dir is a directory.
type dir struct {
	names   map[string]*inode
	durable map[string]*inode // names at the last sync of the directory
	pending []nameChange      // changes of names since the last sync, in order
}

// A nameChange is a creation (from is empty), a removal (to is empty) or a
// renaming of an inode.
type nameChange struct {
	from, to string
	inode    *inode
}

func (c nameChange) apply(names map[string]*inode) {
	if names[c.from] == c.inode {
		delete(names, c.from)
	}
	if c.to != "" {
		names[c.to] = c.inode
	}
}

// New returns an empty file system.
func New() *FS {
	fsys := &FS{dirs: make(map[string]*dir), locks: make(map[*inode]bool)}
	fsys.dirs["/"] = newDir()
	fsys.dirs["."] = newDir()
	return fsys
}

func newDir() *dir {
	return &dir{names: make(map[string]*inode), durable: make(map[string]*inode)}
}

// SetLimit limits the space to a number of bytes; 0 lifts the limit.
func (fsys *FS) SetLimit(bytes int64) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	fsys.limit = bytes
}

// Used returns the total size of the blocks of all files, in bytes.
func (fsys *FS) Used() int64 {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	return fsys.used
}

// Ops returns the number of operations that change something: creations, writes,
// truncations, preallocations, renames, removals and syncs of files and directories.
// Failed operations count.
func (fsys *FS) Ops() int {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	return fsys.ops
}

// CutAt cuts the power before the n-th operation that [FS.Ops] counts. The first
// operation has number 1.
func (fsys *FS) CutAt(n int) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	fsys.cutAt = n
}

// Cut cuts the power at once.
func (fsys *FS) Cut() {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	fsys.cut = true
}

// change counts an operation that changes something. The caller holds mu.
func (fsys *FS) change() error {
	if fsys.cut {
		return ErrPowerCut
	}
	fsys.ops++
	if fsys.ops == fsys.cutAt {
		fsys.cut = true
		return ErrPowerCut
	}
	return nil
}

// find returns the directory and the base of a name. The caller holds mu.
func (fsys *FS) find(op, name string) (*dir, string, error) {
	if fsys.cut {
		return nil, "", pathError(op, name, ErrPowerCut)
	}
	path, base := filepath.Split(filepath.Clean(name))
	d := fsys.dirs[filepath.Clean(path)]
	if d == nil {
		return nil, "", pathError(op, name, fs.ErrNotExist)
	}
	return d, base, nil
}

// inode returns the directory and the base of a name, and its file.
func (fsys *FS) inode(op, name string) (*dir, string, *inode, error) {
	d, base, err := fsys.find(op, name)
	if err != nil {
		return nil, "", nil, err
	}
	if d.names[base] == nil {
		return nil, "", nil, pathError(op, name, fs.ErrNotExist)
	}
	return d, base, d.names[base], nil
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// note records a change of names and applies it.
func (d *dir) note(c nameChange) {
	d.pending = append(d.pending, c)
	c.apply(d.names)
}

// Create implements vfs.FS.
func (fsys *FS) Create(name string) (vfs.File, error) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	d, base, err := fsys.find("create", name)
	if err != nil {
		return nil, err
	}
	if err := fsys.change(); err != nil {
		return nil, pathError("create", name, err)
	}
	if d.names[base] != nil || fsys.dirs[filepath.Clean(name)] != nil {
		return nil, pathError("create", name, fs.ErrExist)
	}
	n := &inode{links: 1}
	d.note(nameChange{to: base, inode: n})
	return fsys.handle(name, n, true), nil
}

// Open implements vfs.FS.
func (fsys *FS) Open(name string) (vfs.File, error) { return fsys.open(name, false) }

// OpenWrite implements vfs.FS.
func (fsys *FS) OpenWrite(name string) (vfs.File, error) { return fsys.open(name, true) }

func (fsys *FS) open(name string, writable bool) (vfs.File, error) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	if fsys.dirs[filepath.Clean(name)] != nil {
		return nil, pathError("open", name, vfs.ErrNotRegular)
	}
	_, _, n, err := fsys.inode("open", name)
	if err != nil {
		return nil, err
	}
	return fsys.handle(name, n, writable), nil
}

// Rename implements vfs.FS.
func (fsys *FS) Rename(oldName, newName string) error {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	d, from, n, err := fsys.inode("rename", oldName)
	if err != nil {
		return err
	}
	d2, to, err := fsys.find("rename", newName)
	if err != nil {
		return err
	}
	if d2 != d {
		return pathError("rename", newName, syscall.EXDEV)
	}
	if err := fsys.change(); err != nil {
		return pathError("rename", oldName, err)
	}
	old := d.names[to]
	if fsys.dirs[filepath.Clean(newName)] != nil {
		return pathError("rename", newName, fs.ErrExist)
	}
	d.note(nameChange{from: from, to: to, inode: n})
	if old != nil && old != n {
		old.links--
		fsys.release(old)
	}
	return nil
}

// Remove implements vfs.FS.
func (fsys *FS) Remove(name string) error {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	d, base, n, err := fsys.inode("remove", name)
	if err != nil {
		return err
	}
	if err := fsys.change(); err != nil {
		return pathError("remove", name, err)
	}
	d.note(nameChange{from: base, inode: n})
	n.links--
	fsys.release(n)
	return nil
}

// List implements vfs.FS.
func (fsys *FS) List(name string) ([]string, error) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	if fsys.cut {
		return nil, pathError("list", name, ErrPowerCut)
	}
	d := fsys.dirs[filepath.Clean(name)]
	if d == nil {
		return nil, pathError("list", name, fs.ErrNotExist)
	}
	names := slices.Collect(maps.Keys(d.names))
	for sub := range fsys.dirs {
		if filepath.Dir(sub) == filepath.Clean(name) && sub != "/" && sub != "." {
			names = append(names, filepath.Base(sub))
		}
	}
	slices.Sort(names)
	return names, nil
}

// Mkdir implements vfs.FS.
func (fsys *FS) Mkdir(name string) error {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	d, base, err := fsys.find("mkdir", name)
	if err != nil {
		return err
	}
	if d.names[base] != nil || fsys.dirs[filepath.Clean(name)] != nil {
		return pathError("mkdir", name, fs.ErrExist)
	}
	fsys.dirs[filepath.Clean(name)] = newDir()
	return nil
}

// SyncDir implements vfs.FS.
func (fsys *FS) SyncDir(name string) error {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	d := fsys.dirs[filepath.Clean(name)]
	if d == nil {
		return pathError("sync", name, fs.ErrNotExist)
	}
	if err := fsys.change(); err != nil {
		return pathError("sync", name, err)
	}
	d.durable, d.pending = maps.Clone(d.names), nil
	return nil
}

// Free implements vfs.FS.
func (fsys *FS) Free(name string) (int64, error) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	switch {
	case fsys.cut:
		return 0, pathError("statfs", name, ErrPowerCut)
	case fsys.dirs[filepath.Clean(name)] == nil:
		return 0, pathError("statfs", name, fs.ErrNotExist)
	case fsys.limit == 0:
		return 1 << 50, nil
	}
	return max(0, fsys.limit-fsys.used), nil
}

// Lock implements vfs.FS.
func (fsys *FS) Lock(name string) (io.Closer, error) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	d, base, err := fsys.find("lock", name)
	if err != nil {
		return nil, err
	}
	key := filepath.Clean(name)
	n := d.names[base]
	if fsys.locks[n] {
		return nil, pathError("lock", name, vfs.ErrLocked)
	}
	if n == nil {
		n = &inode{links: 1}
		d.note(nameChange{to: base, inode: n})
	}
	fsys.locks[n] = true
	return &lock{fsys: fsys, key: key, inode: n}, nil
}

type lock struct {
	fsys  *FS
	key   string
	inode *inode
}

func (l *lock) Close() error {
	l.fsys.mu.Lock()
	defer l.fsys.mu.Unlock()
	if !l.fsys.locks[l.inode] {
		return pathError("unlock", l.key, fs.ErrClosed)
	}
	delete(l.fsys.locks, l.inode)
	return nil
}

// Crash returns the file system that the machine would find at its next start if the
// power failed now. rng draws its contents: the same seed and operations give the same
// result. The limit is kept, but open files and locks are not.
func (fsys *FS) Crash(rng *rand.Rand) *FS {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	after := New()
	after.limit = fsys.limit
	luck := drawLuck(rng)
	for _, path := range slices.Sorted(maps.Keys(fsys.dirs)) {
		d := newDir()
		names := luck.names(rng, fsys.dirs[path])
		copies := make(map[*inode]*inode) // a file can have two names if only half of a rename is durable
		for _, base := range slices.Sorted(maps.Keys(names)) {
			n := names[base]
			if copies[n] == nil {
				copies[n] = luck.contents(rng, n)
				after.used += copies[n].blocks() * blockSize
			}
			copies[n].links++
			d.names[base], d.durable[base] = copies[n], copies[n]
		}
		after.dirs[path] = d
	}
	return after
}
