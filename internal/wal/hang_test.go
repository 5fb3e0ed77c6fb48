package wal

import (
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A hangingFS is a disk on which the sync of a new file blocks until the test permits it.
type hangingFS struct {
	vfs.FS
	begun, end chan struct{}
}

type hangingFile struct {
	vfs.File
	fs *hangingFS
}

func (h *hangingFS) Create(name string) (vfs.File, error) {
	f, err := h.FS.Create(name)
	if err != nil || h.end == nil {
		return f, err
	}
	return &hangingFile{f, h}, nil
}

func (f *hangingFile) Sync() error {
	f.fs.begun <- struct{}{}
	<-f.fs.end
	return f.File.Sync()
}

// While another goroutine creates a file on a hanging disk, the owner can read statistics
// and remove segments.
func TestOwnerWhileDiskHangs(t *testing.T) {
	disk := &hangingFS{FS: memfs.New()}
	l := mustOpen(t, disk, testOptions)
	for range 5 {
		appendAll(t, l, string(make([]byte, 800)))
	}
	must(t, l.pool.removeExcept(0))
	disk.begun, disk.end = make(chan struct{}), make(chan struct{})
	prepared := make(chan error)
	go func() { prepared <- l.Prepare() }()
	<-disk.begun
	l.Stats()
	before, _ := l.Oldest()
	must(t, l.RemoveOldest())
	if after, _ := l.Oldest(); after == before {
		t.Error("no segment was removed")
	}
	close(disk.end)
	for ended := false; !ended; {
		select {
		case <-disk.begun:
		case err := <-prepared:
			must(t, err)
			ended = true
		}
	}
	must(t, l.Close())
}
