package advice

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/beanpole-mq/beanpole/internal/exit"
)

// LockOwner returns a description of the process that has locked the directory of a
// journal, or "" if there is none. It neither locks the directory nor creates a file.
func LockOwner(dir string) (string, error) {
	name := filepath.Join(dir, "lock")
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return "", exit.WithCode(exit.Journal, fmt.Errorf("%s is not a regular file, and no server starts with it; move it away", name))
	}
	f, err := os.OpenFile(name, syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0) // does not block on a FIFO
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", exit.WithCode(exit.Journal, err)
	}
	defer f.Close()
	// A read lock conflicts with a server's lock, which is a write lock.
	lock := syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart}
	switch err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); {
	case err != nil:
		return "", exit.WithCode(exit.Journal, fmt.Errorf("find the process that locks %s: %w", f.Name(), err))
	case lock.Type == syscall.F_UNLCK:
		return "", nil
	case lock.Pid <= 0:
		return "a process in another container", nil
	}
	return fmt.Sprintf("process %d", lock.Pid), nil
}

// IsMember reports whether a directory belongs to a member of a cluster.
func IsMember(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "cluster"))
	return err == nil && info.IsDir()
}
