package vfs_test

import (
	"errors"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/test/vfstest"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

func TestObservedContract(t *testing.T) {
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
		return vfs.Observed(vfs.OS, new(observer)), t.TempDir()
	})
}

// An observer has a clock that advances by 7 at each reading.
type observer struct {
	now  int64
	took []int64
}

func (o *observer) SyncBegins() int64 {
	o.now += 7
	return o.now
}

func (o *observer) SyncEnds(at int64) {
	o.now += 7
	o.took = append(o.took, o.now-at)
}

// The observer is notified of every sync of every file, including failed ones.
func TestObserved(t *testing.T) {
	var o observer
	faulty := faultfs.New(memfs.New())
	fs := vfs.Observed(faulty, &o)
	name := filepath.Join("/", "file")
	for _, open := range []func(string) (vfs.File, error){fs.Create, fs.OpenWrite, fs.Open} {
		f, err := open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	f, err := fs.OpenWrite(name)
	if err != nil {
		t.Fatal(err)
	}
	faulty.Set(faultfs.Fault{Op: faultfs.Sync, N: 1, Err: syscall.EIO})
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("a sync that fails returns %v", err)
	}
	if want := []int64{7, 7, 7, 7}; !slices.Equal(o.took, want) {
		t.Errorf("syncs took %v, want %v", o.took, want)
	}
}
