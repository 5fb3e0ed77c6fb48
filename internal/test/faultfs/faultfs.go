// Package faultfs wraps a file system and makes chosen calls fail.
//
// A [Fault] specifies a failing call: the n-th call of an operation on files whose name
// matches a pattern. A failing call has no effect ([Before]), its full effect ([After]),
// or, for a write, half of its effect ([Short]). To test a program with all faults, count
// the calls of a run without faults, and then let each call fail in turn:
//
//	for n := 1; n <= calls; n++ {
//		fsys := faultfs.New(memfs.New(), faultfs.Fault{Op: faultfs.Any, N: n, How: faultfs.After, Err: syscall.EIO})
//		…
//	}
//
// Closing a file never fails, because a program cannot react to such a failure.
package faultfs

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// An Op is an operation that can fail.
type Op string

// The operations, named after the methods of vfs.FS and vfs.File. Any covers all of them.
// Change covers those that change data on the disk or make it durable.
const (
	Any         Op = ""
	Change      Op = "Change"
	Create      Op = "Create"
	Open        Op = "Open"
	OpenWrite   Op = "OpenWrite"
	Rename      Op = "Rename"
	Remove      Op = "Remove"
	Stat        Op = "Stat"
	List        Op = "List"
	Mkdir       Op = "Mkdir"
	SyncDir     Op = "SyncDir"
	Free        Op = "Free"
	Lock        Op = "Lock"
	Read        Op = "Read"
	Write       Op = "Write"
	Truncate    Op = "Truncate"
	Preallocate Op = "Preallocate"
	Sync        Op = "Sync"
)

// covers reports whether a fault of op applies to a call.
func (op Op) covers(call Op) bool {
	switch op {
	case Any:
		return true
	case Change:
		switch call {
		case Create, Rename, Remove, Mkdir, SyncDir, Write, Truncate, Preallocate, Sync:
			return true
		}
	}
	return op == call
}

// A How specifies the effect of a failing call.
type How int

const (
	Before How = iota // no effect
	After             // the full effect
	Short             // a write writes the first half; other calls behave as with Before
)

// String returns the name of the effect.
func (h How) String() string { return [...]string{"Before", "After", "Short"}[h] }

// A Fault makes calls fail.
type Fault struct {
	Op     Op
	Name   string // pattern, as in filepath.Match, for the base of the file's name; "" matches all
	N      int    // number of the failing call among the matching calls, from 1; 0 means 1
	How    How
	Sticky bool          // whether all calls from the n-th on fail
	Err    syscall.Errno // 0 means EIO
}

// An FS is a file system with faults.
type FS struct {
	base vfs.FS

	mu     sync.Mutex
	faults []*armed
}

// An armed fault counts its calls.
type armed struct {
	Fault
	seen  int // number of matching calls
	fired int // number of failed calls
}

// New wraps base.
func New(base vfs.FS, faults ...Fault) *FS {
	f := &FS{base: base}
	f.Set(faults...)
	return f
}

// Set replaces the faults and resets their counters. Without arguments, no call fails.
func (f *FS) Set(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
	for _, fault := range faults {
		f.faults = append(f.faults, &armed{Fault: fault})
	}
}

// Fired returns the number of calls that failed since the last Set.
func (f *FS) Fired() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	fired := 0
	for _, a := range f.faults {
		fired += a.fired
	}
	return fired
}

// Seen returns the number of calls that the first fault has matched since the last Set.
// With an N that is never reached, a fault only counts calls.
func (f *FS) Seen() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.faults) == 0 {
		return 0
	}
	return f.faults[0].seen
}

// fault returns the fault that applies to a call, or nil.
func (f *FS) fault(op Op, name string) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var hit *Fault
	for _, a := range f.faults {
		if !a.matches(op, name) {
			continue
		}
		a.seen++
		n := max(a.N, 1)
		if hit == nil && (a.seen == n || a.Sticky && a.seen > n) {
			a.fired++
			hit = &a.Fault
		}
	}
	return hit
}

func (f *Fault) matches(op Op, name string) bool {
	if !f.Op.covers(op) {
		return false
	}
	if f.Name == "" {
		return true
	}
	ok, err := filepath.Match(f.Name, filepath.Base(name))
	if err != nil {
		panic(fmt.Sprintf("faultfs: pattern %q: %v", f.Name, err))
	}
	return ok
}

func (f *Fault) err(op Op, name string) error {
	err := f.Err
	if err == 0 {
		err = syscall.EIO
	}
	return &fs.PathError{Op: "faultfs " + strings.ToLower(string(op)), Path: name, Err: err}
}

// do makes a call that returns only an error.
func (f *FS) do(op Op, name string, call func() error) error {
	fault := f.fault(op, name)
	if fault == nil {
		return call()
	}
	if fault.How == After {
		if err := call(); err != nil {
			return err
		}
	}
	return fault.err(op, name)
}

// get makes a call that returns a value and an error. A file or a lock that a call opens
// before it fails with After is closed, but the effect of the call on the disk remains.
func get[T any](f *FS, op Op, name string, call func(string) (T, error)) (v T, err error) {
	err = f.do(op, name, func() (err error) {
		v, err = call(name)
		return err
	})
	if err == nil {
		return v, nil
	}
	if opened, ok := any(v).(io.Closer); ok {
		opened.Close()
	}
	return *new(T), err
}

func (f *FS) open(op Op, name string, call func(string) (vfs.File, error)) (vfs.File, error) {
	base, err := get(f, op, name, call)
	if err != nil {
		return nil, err
	}
	return &file{File: base, fsys: f, name: name}, nil
}

func (f *FS) Create(name string) (vfs.File, error) { return f.open(Create, name, f.base.Create) }
func (f *FS) Open(name string) (vfs.File, error)   { return f.open(Open, name, f.base.Open) }
func (f *FS) OpenWrite(name string) (vfs.File, error) {
	return f.open(OpenWrite, name, f.base.OpenWrite)
}

func (f *FS) Rename(oldName, newName string) error {
	return f.do(Rename, oldName, func() error { return f.base.Rename(oldName, newName) })
}

func (f *FS) Remove(name string) error {
	return f.do(Remove, name, func() error { return f.base.Remove(name) })
}

func (f *FS) Mkdir(dir string) error {
	return f.do(Mkdir, dir, func() error { return f.base.Mkdir(dir) })
}

func (f *FS) SyncDir(dir string) error {
	return f.do(SyncDir, dir, func() error { return f.base.SyncDir(dir) })
}

func (f *FS) List(dir string) ([]string, error)   { return get(f, List, dir, f.base.List) }
func (f *FS) Free(dir string) (int64, error)      { return get(f, Free, dir, f.base.Free) }
func (f *FS) Lock(name string) (io.Closer, error) { return get(f, Lock, name, f.base.Lock) }

// A file is an open file with faults.
type file struct {
	vfs.File
	fsys *FS
	name string
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if fault := f.fsys.fault(Read, f.name); fault != nil {
		return 0, fault.err(Read, f.name)
	}
	return f.File.ReadAt(p, off)
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	fault := f.fsys.fault(Write, f.name)
	if fault == nil {
		return f.File.WriteAt(p, off)
	}
	switch fault.How {
	case Before:
		p = nil
	case Short:
		p = p[:len(p)/2]
	}
	n := 0
	if len(p) > 0 {
		var err error
		if n, err = f.File.WriteAt(p, off); err != nil {
			return n, err
		}
	}
	if fault.How == After {
		n = 0 // the caller must assume that no bytes were written
	}
	return n, fault.err(Write, f.name)
}

func (f *file) Stat() (size int64, named bool, err error) {
	err = f.fsys.do(Stat, f.name, func() (err error) {
		size, named, err = f.File.Stat()
		return err
	})
	return size, named, err
}

func (f *file) Sync() error { return f.fsys.do(Sync, f.name, f.File.Sync) }

func (f *file) Truncate(size int64) error {
	return f.fsys.do(Truncate, f.name, func() error { return f.File.Truncate(size) })
}

func (f *file) Preallocate(size int64) error {
	return f.fsys.do(Preallocate, f.name, func() error { return f.File.Preallocate(size) })
}
