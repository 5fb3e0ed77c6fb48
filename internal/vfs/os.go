//go:build unix

package vfs

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
)

// OS is the file system of the operating system.
var OS FS = osFS{}

type osFS struct{}

// An osFile is an *os.File with our own system calls. Sync and Preallocate differ by
// system.
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

// openAny opens a file or a directory. O_NONBLOCK has no effect on either, but without it
// opening a FIFO waits for a process at the other end.
func openAny(name string, flag int) (f osFile, err error) {
	var fd int
	err = retry(func() (err error) {
		fd, err = syscall.Open(name, flag|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return f, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	_ = syscall.SetNonblock(fd, false) // so that NewFile does not register it with the poller
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

// lstat describes a file and follows no symbolic link.
func lstat(name string) (st syscall.Stat_t, err error) {
	if err = retry(func() error { return syscall.Lstat(name, &st) }); err != nil {
		err = &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	return st, err
}

func isRegular(st *syscall.Stat_t) bool { return st.Mode&syscall.S_IFMT == syscall.S_IFREG }

// An inode identifies a file, whatever its name.
type inode struct{ dev, ino uint64 }

func inodeOf(st *syscall.Stat_t) inode { return inode{uint64(st.Dev), uint64(st.Ino)} }

func (osFS) Create(name string) (File, error)    { return open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL) }
func (osFS) Open(name string) (File, error)      { return open(name, os.O_RDONLY) }
func (osFS) OpenWrite(name string) (File, error) { return open(name, os.O_RDWR) }

func (osFS) Mkdir(dir string) error { return os.Mkdir(dir, 0o700) }

func (osFS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

func (osFS) Remove(name string) error {
	// os.Remove would also remove an empty directory.
	if err := retry(func() error { return syscall.Unlink(name) }); err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

func (osFS) Size(name string) (int64, error) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (osFS) List(dir string) ([]string, error) {
	d, err := openAny(dir, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, err
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

func (f osFile) Stat() (size int64, named bool, err error) {
	st, err := f.stat()
	return st.Size, st.Nlink > 0, err
}

// fillZeros implements Preallocate on systems without a better call.
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

// retry repeats a call that a signal interrupts, as package os does.
func retry(call func() error) error {
	for {
		if err := call(); err != syscall.EINTR {
			return err
		}
	}
}

// A control is a system call on the descriptor of a file. Controls are reused, because
// each turn syncs and must not allocate.
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
	c.err = retry(func() error { return c.call(int(fd)) })
}

// control makes a system call on the descriptor and keeps it open during the call.
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
