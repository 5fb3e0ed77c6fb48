package journalcmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/beanpole-mq/beanpole/cmd/beanpole/internal/command"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// checkDirectory makes sure that there is a directory that can be read.
func checkDirectory(dir string) error {
	d, err := os.OpenFile(dir, syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0) // does not block on a FIFO
	if err == nil {
		_, err = d.Readdirnames(1)
		d.Close()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return command.WithCode(command.ExitJournal, err)
	}
	return nil
}

// holderOf says which process uses a journal's directory; empty: none. It takes no lock
// itself, so that it hinders no server, and makes no file.
func holderOf(dir string) (string, error) {
	name := filepath.Join(dir, "lock")
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return "", command.WithCode(command.ExitJournal, fmt.Errorf("%s is not a regular file: no server will start (move it away)", name))
	}
	f, err := os.OpenFile(name, syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0) // does not block on a FIFO
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", command.WithCode(command.ExitJournal, err)
	}
	defer f.Close()
	// A lock for reading conflicts with a server's lock, which is one for writing.
	lock := syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart}
	switch err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); {
	case err != nil:
		return "", command.WithCode(command.ExitJournal, fmt.Errorf("ask which process locks %s: %w", f.Name(), err))
	case lock.Type == syscall.F_UNLCK:
		return "", nil
	case lock.Pid <= 0:
		return "a process of another container", nil
	}
	return fmt.Sprintf("process %d", lock.Pid), nil
}

// isMember reports whether a directory is that of a member of a cluster.
func isMember(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "cluster"))
	return err == nil && info.IsDir()
}

// refuseMember returns an error if a directory is that of a member of a cluster, where a
// command would change what the members have agreed on.
func refuseMember(dir, name, instead string) error {
	if !isMember(dir) {
		return nil
	}
	return command.WithCode(command.ExitJournal, fmt.Errorf("directory %s is that of a member of a cluster, whose journal %s must not change: "+
		"it would differ from those of the other members (%s)", dir, name, instead))
}

// rejoin says how a member gets a journal that is well.
func rejoin(dir string) string {
	return fmt.Sprintf("the other members have all of it: 'beanpole cluster rejoin %s'", dir)
}

// lockJournal takes the lock of a journal for a tool that needs it for itself.
// Until it is closed, holderOf must not be called: closing any descriptor of the
// file gives the lock up.
func lockJournal(dir string) (io.Closer, error) {
	lock, err := vfs.OS.Lock(filepath.Join(dir, "lock"))
	if errors.Is(err, vfs.ErrLocked) {
		err = fmt.Errorf("directory %s: %w (stop the server first)", dir, err)
	}
	if err != nil {
		return nil, command.WithCode(command.ExitJournal, err)
	}
	return lock, nil
}
