package wal

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

// Open refuses a directory without write permission, and accepts one on a full disk.
func TestDirectoryThatCannotBeWritten(t *testing.T) {
	for _, test := range []struct {
		errno   syscall.Errno
		refused bool
	}{{syscall.EACCES, true}, {syscall.EPERM, true}, {syscall.ENOSPC, false}, {syscall.EMFILE, false}} {
		fsys := faultfs.New(memfs.New(), faultfs.Fault{Op: faultfs.Create, Sticky: true, Err: test.errno})
		l, err := Open(fsys, testDir, testOptions)
		if errors.Is(err, fs.ErrPermission) != test.refused || (err != nil) != test.refused {
			t.Errorf("%v: %v", test.errno, err)
		}
		if err == nil {
			must(t, l.Close())
		}
	}
}
