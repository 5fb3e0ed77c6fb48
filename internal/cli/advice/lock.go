package advice

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// Lock takes the lock of a journal for a command that needs it for itself.
// Until it is closed, cliutil.LockOwner must not be called: closing any descriptor of the
// file gives the lock up.
func Lock(dir string) (io.Closer, error) {
	lock, err := vfs.OS.Lock(filepath.Join(dir, "lock"))
	if errors.Is(err, vfs.ErrLocked) {
		err = fmt.Errorf("directory %s: %w (stop the server first)", dir, err)
	}
	if err != nil {
		return nil, cliutil.WithCode(cliutil.ExitJournal, err)
	}
	return lock, nil
}
