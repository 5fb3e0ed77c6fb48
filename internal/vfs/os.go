//go:build unix

package vfs

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
)

// OS is the file system of the operating system.
var OS FS = osFS{}

type osFS struct{}

// Calls end with an error if a signal interrupts them again and again; package os would
// repeat them for ever (see retry). So it is not asked to open, look at, rename or list anything.

// An osFile is an *os.File with calls of ours. Sync and Preallocate differ by system.
type osFile struct {
	*os.File
	conn syscall.RawConn
}

// open opens a regular file.
func open(name string, flag int) (File, error) {
	f, err := openAny(name, flag)
	if err != nil {
		return nil, err
	}
	if st, err := f.stat(); err != nil || !isRegular(&st) {
		f.Close()
		return nil, cmp.Or(err, error(&fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}))
	}
	return f, nil
}

// openAny opens a file or a directory. O_NONBLOCK means nothing to one, but without it the
// opening of a FIFO waits for a process at the other end.
func openAny(name string, flag int) (f osFile, err error) {
	var fd int
	err = retry(func() (err error) {
		fd, err = syscall.Open(name, flag|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return f, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	_ = syscall.SetNonblock(fd, false) // so that NewFile does not give it to the poller
	f.File = os.NewFile(uintptr(fd), name)
	if f.conn, err = f.SyscallConn(); err != nil {
		f.Close()
	}
	return f, err
}

func (f osFile) stat() (st syscall.Stat_t, err error) {
	c := controls.Get().(*control)
	defer controls.Put(c)
	err = c.on(f, "stat", c.fstat)
	return c.st, err
}

// stat describes a file by its name, with syscall.Stat or syscall.Lstat.
func stat(call func(string, *syscall.Stat_t) error, name string) (st syscall.Stat_t, err error) {
	if err = retry(func() error { return call(name, &st) }); err != nil {
		err = &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return st, err
}

func isRegular(st *syscall.Stat_t) bool { return st.Mode&syscall.S_IFMT == syscall.S_IFREG }

// An inode is what names of one file have in common.
type inode struct{ dev, ino uint64 }

func inodeOf(st *syscall.Stat_t) inode { return inode{uint64(st.Dev), uint64(st.Ino)} }

func (osFS) Create(name string) (File, error)    { return open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL) }
func (osFS) Open(name string) (File, error)      { return open(name, os.O_RDONLY) }
func (osFS) OpenWrite(name string) (File, error) { return open(name, os.O_RDWR) }

func (osFS) Mkdir(dir string) error {
	if err := retry(func() error { return syscall.Mkdir(dir, 0o700) }); err != nil {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: err}
	}
	return nil
}

// renameUnlessThere is Rename where the system has no call for it. A file of the
// new name that is made in between is replaced.
func renameUnlessThere(oldName, newName string) error {
	_, err := stat(syscall.Lstat, newName)
	switch {
	case err == nil:
		err = syscall.EEXIST
	case errors.Is(err, fs.ErrNotExist):
		err = retry(func() error { return syscall.Rename(oldName, newName) })
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: err}
	}
	return nil
}

func (osFS) Remove(name string) error {
	// Not os.Remove, which would remove an empty directory too.
	if err := retry(func() error { return syscall.Unlink(name) }); err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

func (osFS) Size(name string) (int64, error) {
	st, err := stat(syscall.Stat, name)
	return st.Size, err
}

func (osFS) List(dir string) (names []string, err error) {
	d, err := openAny(dir, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	buf := make([]byte, 1<<13)
	for {
		var n int
		err := d.control("list", func(fd int) (err error) {
			n, err = syscall.ReadDirent(fd, buf)
			return err
		})
		if err != nil {
			return nil, err
		}
		if n == 0 {
			slices.Sort(names)
			return names, nil
		}
		_, _, names = syscall.ParseDirent(buf[:n], -1, names)
	}
}

func (osFS) SyncDir(dir string) error {
	d, err := openAny(dir, os.O_RDONLY)
	if err != nil {
		return err
	}
	return errors.Join(d.syncDir(), d.Close())
}

func (osFS) Free(dir string) (int64, error) {
	var st syscall.Statfs_t
	if err := retry(func() error { return syscall.Statfs(dir, &st) }); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

func (f osFile) Size() (int64, error) {
	st, err := f.stat()
	return st.Size, err
}

func (f osFile) Stat() (size int64, named bool, err error) {
	st, err := f.stat()
	return st.Size, st.Nlink > 0, err
}

// fillZeros is Preallocate where the system has nothing better.
func (f osFile) fillZeros(from, to int64) error {
	zeros := make([]byte, 1<<16)
	for off := from; off < to; {
		n, err := f.WriteAt(zeros[:min(int64(len(zeros)), to-off)], off)
		if err != nil {
			return errors.Join(err, f.Truncate(from))
		}
		off += int64(n)
	}
	return nil
}

// maxInterrupts is how often a call is repeated that a signal has interrupted. On a file
// that hardly ever happens; a file system that always says so is one that has failed.
const maxInterrupts = 1000

// retry repeats a call that a signal has interrupted.
func retry(call func() error) (err error) {
	for range maxInterrupts {
		if err = call(); err != syscall.EINTR {
			return err
		}
	}
	return err
}

// A control is a system call on the descriptor of a file. Controls and transfers are used
// again: each turn writes and syncs, and must not allocate.
type control struct {
	call  func(fd int) error
	err   error
	do    func(fd uintptr) // run
	st    syscall.Stat_t
	fstat func(fd int) error // into st
}

var controls = sync.Pool{New: func() any {
	c := new(control)
	c.do = c.run
	c.fstat = func(fd int) error { return syscall.Fstat(fd, &c.st) }
	return c
}}

func (c *control) run(fd uintptr) {
	for range maxInterrupts {
		if c.err = c.call(int(fd)); c.err != syscall.EINTR {
			return
		}
	}
}

// control makes a system call on the descriptor, which stays open meanwhile.
func (f osFile) control(op string, call func(fd int) error) error {
	c := controls.Get().(*control)
	defer controls.Put(c)
	return c.on(f, op, call)
}

func (c *control) on(f osFile, op string, call func(fd int) error) error {
	c.call = call
	err := f.conn.Control(c.do)
	c.call = nil
	if err != nil { // Control itself has no other reason to fail
		return &fs.PathError{Op: op, Path: f.Name(), Err: fs.ErrClosed}
	}
	if c.err != nil {
		return &fs.PathError{Op: op, Path: f.Name(), Err: c.err}
	}
	return nil
}

func (f osFile) Truncate(size int64) error {
	return f.control("truncate", func(fd int) error { return syscall.Ftruncate(fd, size) })
}

func (f osFile) WriteAt(b []byte, off int64) (int, error) {
	return f.transfer("write", syscall.Pwrite, b, off)
}

func (f osFile) ReadAt(b []byte, off int64) (int, error) {
	return f.transfer("read", syscall.Pread, b, off)
}

// A transfer reads or writes all of a buffer.
type transfer struct {
	call func(fd int, b []byte, off int64) (int, error)
	b    []byte
	off  int64
	n    int
	err  error
	do   func(fd uintptr) // run
}

var transfers = sync.Pool{New: func() any {
	t := new(transfer)
	t.do = t.run
	return t
}}

func (f osFile) transfer(op string, call func(fd int, b []byte, off int64) (int, error), b []byte, off int64) (int, error) {
	t := transfers.Get().(*transfer)
	defer transfers.Put(t)
	t.call, t.b, t.off, t.n, t.err = call, b, off, 0, nil
	err := f.conn.Control(t.do)
	t.b = nil
	switch {
	case err != nil:
		err = fs.ErrClosed
	case t.err == io.EOF:
		return t.n, io.EOF
	default:
		err = t.err
	}
	if err != nil {
		err = &fs.PathError{Op: op, Path: f.Name(), Err: err}
	}
	return t.n, err
}

func (t *transfer) run(fd uintptr) {
	for interrupts := 0; t.n < len(t.b); {
		n, err := t.call(int(fd), t.b[t.n:min(len(t.b), t.n+maxTransfer)], t.off+int64(t.n))
		switch {
		case err == syscall.EINTR && interrupts < maxInterrupts:
			interrupts++
		case err != nil:
			t.err = err
			return
		case n == 0:
			t.err = io.EOF
			return
		default:
			t.n += n
		}
	}
}

// maxTransfer is the largest size of one system call: some systems refuse 2 GiB.
const maxTransfer = 1 << 30
