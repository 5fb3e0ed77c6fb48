//go:build unix

package vfs

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// OS is the file system of the operating system.
var OS FS = osFS{}

type osFS struct{}

// An osFile is an *os.File; Sync and Preallocate differ by system.
type osFile struct{ *os.File }

// open opens a regular file. O_NONBLOCK means nothing to one, but without it the
// opening of a FIFO waits for a process at the other end.
func open(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if err := checkRegular(f); err != nil {
		f.Close()
		return nil, err
	}
	return osFile{f}, nil
}

func checkRegular(f *os.File) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.Name(), Err: ErrNotRegular}
	}
	return err
}

func (osFS) Create(name string) (File, error)    { return open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL) }
func (osFS) Open(name string) (File, error)      { return open(name, os.O_RDONLY) }
func (osFS) OpenWrite(name string) (File, error) { return open(name, os.O_RDWR) }

func (osFS) Mkdir(dir string) error { return os.Mkdir(dir, 0o700) }

// renameUnlessThere is Rename where the system has no call for it. A file of the
// new name that is made in between is replaced.
func renameUnlessThere(oldName, newName string) error {
	if _, err := os.Lstat(newName); !errors.Is(err, fs.ErrNotExist) {
		return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: cmp.Or(err, error(syscall.EEXIST))}
	}
	return os.Rename(oldName, newName)
}

func (osFS) Remove(name string) error {
	// Not os.Remove, which would remove an empty directory too.
	if err := ignoringEINTR(func() error { return syscall.Unlink(name) }); err != nil {
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
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (osFS) Free(dir string) (int64, error) {
	var st syscall.Statfs_t
	if err := ignoringEINTR(func() error { return syscall.Statfs(dir, &st) }); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) Named(name string) (bool, error) {
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	other, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, other), err
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

func ignoringEINTR(call func() error) error {
	for {
		if err := call(); err != syscall.EINTR {
			return err
		}
	}
}
