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

// refuseMember returns an error if a directory is that of a member of a cluster, where a
// command would change what the members have agreed on.
func refuseMember(dir, name, instead string) error {
	if !kit.IsMember(dir) {
		return nil
	}
	return kit.WithCode(kit.ExitJournal, fmt.Errorf("directory %s is that of a member of a cluster, whose journal %s must not change: "+
		"it would differ from those of the other members (%s)", dir, name, instead))
}
