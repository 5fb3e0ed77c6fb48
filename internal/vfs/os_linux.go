package vfs

import (
	"errors"
	"syscall"
)

// Sync calls fdatasync, which writes a changed size, but not the times. Writing the times
// would cost a transaction in the file system's journal each time.
func (f osFile) Sync() error { return f.control("fdatasync", syscall.Fdatasync) }

// Preallocate calls fallocate. On file systems that do not support it, such as NFS before
// 4.2, it writes zeros.
func (f osFile) Preallocate(size int64) error {
	old, _, err := f.Stat()
	if err != nil {
		return err
	}
	err = f.control("fallocate", func(fd int) error { return syscall.Fallocate(fd, 0, 0, size) })
	switch {
	case errors.Is(err, syscall.EOPNOTSUPP) && old < size:
		return f.fillZeros(old, size)
	case errors.Is(err, syscall.EOPNOTSUPP):
		return nil
	case err != nil:
		// A failed fallocate can leave a changed size or some blocks.
		return errors.Join(err, f.Truncate(old))
	}
	return nil
}
