package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"

	"github.com/beanpole-mq/beanpole/internal/cli/kit"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// checkDirectory makes sure that there is a directory that can be read.
func checkDirectory(dir string) error {
	d, err := os.OpenFile(dir, syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0) // does not block on a FIFO
	if err == nil {
		_, err = d.Readdirnames(1)
		d.Close()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return kit.WithCode(kit.ExitJournal, err)
	}
	return nil
}

// checkJournal makes sure that a server has used a directory, or that there are segments.
func checkJournal(dir string) error {
	names, err := vfs.OS.List(dir)
	if err != nil {
		return kit.WithCode(kit.ExitJournal, err)
	}
	if slices.ContainsFunc(names, func(name string) bool { return name == "lock" || wal.IsFileName(name) }) {
		return nil
	}
	return fmt.Errorf("directory %s: there is no journal", dir)
}
