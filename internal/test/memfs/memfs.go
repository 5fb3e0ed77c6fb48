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

// do runs the body of a method under the lock, unless the power is cut, and adds the name
// to its error.
func (fsys *FS) do(op, name string, body func() error) error {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	err := ErrPowerCut
	if !fsys.cut {
		err = body()
	}
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// change is do for an operation that changes something, which it counts.
func (fsys *FS) change(op, name string, body func() error) error {
	return fsys.do(op, name, func() error {
		fsys.ops++
		if fsys.ops == fsys.cutAt {
			fsys.cut = true
			return ErrPowerCut
		}
		return body()
	})
}

// dir returns the directory with a name, or nil. The caller holds mu.
func (fsys *FS) dir(name string) *dir { return fsys.dirs[filepath.Clean(name)] }

// find returns the directory and the base of a name. The caller holds mu.
func (fsys *FS) find(name string) (*dir, string, error) {
	path, base := filepath.Split(filepath.Clean(name))
	if d := fsys.dir(path); d != nil {
		return d, base, nil
	}
	return nil, "", fs.ErrNotExist
}

// inode returns the directory and the base of a name, and its file.
func (fsys *FS) inode(name string) (*dir, string, *inode, error) {
	d, base, err := fsys.find(name)
	if err == nil && d.names[base] == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, "", nil, err
	}
	return d, base, d.names[base], nil
}

// note records a change of names and applies it.
func (d *dir) note(c nameChange) {
	d.pending = append(d.pending, c)
	c.apply(d.names)
}

// Create implements vfs.FS.
func (fsys *FS) Create(name string) (f vfs.File, err error) {
	err = fsys.change("create", name, func() error {
		d, base, err := fsys.find(name)
		if err != nil {
			return err
		}
		if d.names[base] != nil || fsys.dir(name) != nil {
			return fs.ErrExist
		}
		n := &inode{links: 1}
		d.note(nameChange{to: base, inode: n})
		f = fsys.handle(name, n, true)
		return nil
	})
	return f, err
}

// Open implements vfs.FS.
func (fsys *FS) Open(name string) (vfs.File, error) { return fsys.open(name, false) }

// OpenWrite implements vfs.FS.
func (fsys *FS) OpenWrite(name string) (vfs.File, error) { return fsys.open(name, true) }

func (fsys *FS) open(name string, writable bool) (f vfs.File, err error) {
	err = fsys.do("open", name, func() error {
		if fsys.dir(name) != nil {
			return vfs.ErrNotRegular
		}
		_, _, n, err := fsys.inode(name)
		if err == nil {
			f = fsys.handle(name, n, writable)
		}
		return err
	})
	return f, err
}

// Rename implements vfs.FS.
func (fsys *FS) Rename(oldName, newName string) error {
	return fsys.change("rename", oldName, func() error {
		d, from, n, err := fsys.inode(oldName)
		if err != nil {
			return err
		}
		d2, to, err := fsys.find(newName)
		if err != nil {
			return err
		}
		if d2 != d {
			return syscall.EXDEV
		}
		if fsys.dir(newName) != nil {
			return fs.ErrExist
		}
		old := d.names[to]
		d.note(nameChange{from: from, to: to, inode: n})
		if old != nil && old != n {
			old.links--
			fsys.release(old)
		}
		return nil
	})
}

// Remove implements vfs.FS.
func (fsys *FS) Remove(name string) error {
	return fsys.change("remove", name, func() error {
		d, base, n, err := fsys.inode(name)
		if err != nil {
			return err
		}
		d.note(nameChange{from: base, inode: n})
		n.links--
		fsys.release(n)
		return nil
	})
}

// List implements vfs.FS.
func (fsys *FS) List(name string) (names []string, err error) {
	err = fsys.do("list", name, func() error {
		d := fsys.dir(name)
		if d == nil {
			return fs.ErrNotExist
		}
		names = slices.Collect(maps.Keys(d.names))
		for sub := range fsys.dirs {
			if filepath.Dir(sub) == filepath.Clean(name) && sub != "/" && sub != "." {
				names = append(names, filepath.Base(sub))
			}
		}
		slices.Sort(names)
		return nil
	})
	return names, err
}

// Mkdir implements vfs.FS.
func (fsys *FS) Mkdir(name string) error {
	return fsys.do("mkdir", name, func() error {
		d, base, err := fsys.find(name)
		if err != nil {
			return err
		}
		if d.names[base] != nil || fsys.dir(name) != nil {
			return fs.ErrExist
		}
		fsys.dirs[filepath.Clean(name)] = newDir()
		return nil
	})
}

// SyncDir implements vfs.FS.
func (fsys *FS) SyncDir(name string) error {
	return fsys.change("sync", name, func() error {
		d := fsys.dir(name)
		if d == nil {
			return fs.ErrNotExist
		}
		d.durable, d.pending = maps.Clone(d.names), nil
		return nil
	})
}

// Free implements vfs.FS.
func (fsys *FS) Free(name string) (free int64, err error) {
	err = fsys.do("statfs", name, func() error {
		if fsys.dir(name) == nil {
			return fs.ErrNotExist
		}
		if free = 1 << 50; fsys.limit > 0 {
			free = max(0, fsys.limit-fsys.used)
		}
		return nil
	})
	return free, err
}

// Lock implements vfs.FS.
func (fsys *FS) Lock(name string) (l io.Closer, err error) {
	err = fsys.do("lock", name, func() error {
		d, base, err := fsys.find(name)
		if err != nil {
			return err
		}
		n := d.names[base]
		if fsys.locks[n] {
			return vfs.ErrLocked
		}
		if n == nil {
			n = &inode{links: 1}
			d.note(nameChange{to: base, inode: n})
		}
		fsys.locks[n] = true
		l = &lock{fsys, n}
		return nil
	})
	return l, err
}

type lock struct {
	fsys  *FS
	inode *inode
}

func (l *lock) Close() error {
	l.fsys.mu.Lock()
	defer l.fsys.mu.Unlock()
	delete(l.fsys.locks, l.inode)
	return nil
}

// Crash returns the file system that the machine would find at its next start if the
// power failed now. rng draws its contents: the same seed and operations give the same
// result. If rng is nil, only the process ends, and all written data survives. The limit
// is kept, but open files and locks are not.
func (fsys *FS) Crash(rng *rand.Rand) *FS {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	after := New()
	after.limit = fsys.limit
	luck := luck{keep: 1}
	if rng != nil {
		luck = drawLuck(rng)
	} else {
		rng = rand.New(rand.NewPCG(0, 0)) // without influence
	}
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
