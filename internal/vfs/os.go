//go:build unix

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// OS is the file system of the operating system.
var OS FS = osFS{}

type osFS struct{}

// An osFile is an *os.File with our own system calls. Sync and Preallocate differ by
// system.
type osFile struct{ *os.File }

// open opens a regular file.
func open(name string, flag int) (File, error) {
	f, err := openAny(name, flag)
	if err != nil {
		return nil, err
	}
	info, err := f.File.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openAny opens a file or a directory. O_NONBLOCK has no effect on either, but without
// it, opening a FIFO would wait for a process at the other end.
func openAny(name string, flag int) (osFile, error) {
	f, err := os.OpenFile(name, flag|syscall.O_NONBLOCK, 0o600)
	return osFile{f}, err
}

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
	return errors.Join(d.File.Sync(), d.Close())
}

func (osFS) Free(dir string) (int64, error) {
	var st syscall.Statfs_t
	if err := retry(func() error { return syscall.Statfs(dir, &st) }); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

func (f osFile) Stat() (size int64, named bool, err error) {
	var st syscall.Stat_t
	err = f.control("stat", func(fd int) error { return syscall.Fstat(fd, &st) })
	return st.Size, st.Nlink > 0, err
}

// control makes a system call on the descriptor. It allocates nothing, because each turn
// syncs.
func (f osFile) control(op string, call func(fd int) error) error {
	err := retry(func() error { return call(int(f.Fd())) })
	if err == nil {
		return nil
	}
	if err == syscall.EBADF {
		err = fs.ErrClosed
	}
	return &fs.PathError{Op: op, Path: f.Name(), Err: err}
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
