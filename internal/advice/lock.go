package advice

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// Lock takes the lock of a journal for a command that needs exclusive access. LockOwner
// must not be called before the lock is closed, because closing any descriptor of the
// file releases the lock.
func Lock(dir string) (io.Closer, error) {
	lock, err := vfs.OS.Lock(filepath.Join(dir, "lock"))
	if errors.Is(err, vfs.ErrLocked) {
		err = fmt.Errorf("directory %s: %w (stop the server first)", dir, err)
	}
	if err != nil {
		return nil, exit.WithCode(exit.Journal, err)
	}
	return lock, nil
}
