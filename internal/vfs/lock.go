//go:build unix

package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
)

// locks contains the locks that this process holds.
//
// Each is a traditional POSIX lock, an fcntl write lock on the whole file, because
// beanstalkd uses the same. Such a lock has two traps: it does not exclude the process
// that holds it, and the process loses it when it closes any descriptor of the file.
// Therefore, Lock looks for a file in locks before it opens it.
var locks struct {
	mu   sync.Mutex
	held []*heldLock
}

type heldLock struct {
	f    io.Closer
	info fs.FileInfo
}

// Lock locks a file, with mode 0600, against other processes, including beanstalkd, and
// against this one. It does not follow symbolic links, because another user's link could
// make root create any file.
func (osFS) Lock(name string) (io.Closer, error) {
	locks.mu.Lock()
	defer locks.mu.Unlock()

	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // in this case, it is not in locks either
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("lock %s: %w", name, ErrNotRegular)
	case slices.ContainsFunc(locks.held, func(l *heldLock) bool { return os.SameFile(l.info, info) }):
		return nil, fmt.Errorf("lock %s: %w by this process", name, ErrLocked)
	}
	f, err := openAny(name, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	if info, err = f.File.Stat(); err == nil {
		err = lockWhole(f.File)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	l := &heldLock{f, info}
	locks.held = append(locks.held, l)
	return l, nil
}

// lockWhole takes the fcntl lock on f. The error contains the process that holds it.
func lockWhole(f *os.File) error {
	whole := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	err := retry(func() error { return syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &whole) })
	if err != syscall.EAGAIN && err != syscall.EACCES {
		return err
	}
	holder := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &holder); err == nil && holder.Type != syscall.F_UNLCK && holder.Pid > 0 {
		return fmt.Errorf("%w by process %d", ErrLocked, holder.Pid)
	}
	return fmt.Errorf("%w by another process", ErrLocked)
}

// Close releases the lock. The file remains.
func (l *heldLock) Close() error {
	locks.mu.Lock()
	defer locks.mu.Unlock()
	locks.held = slices.DeleteFunc(locks.held, func(h *heldLock) bool { return h == l })
	return l.f.Close()
}
