package vfs_test

import (
	"errors"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/vfs/faultfs"
	"github.com/beanpole-mq/beanpole/internal/vfs/memfs"
	"github.com/beanpole-mq/beanpole/internal/vfs/vfstest"
)

func TestTimedContract(t *testing.T) {
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
		return vfs.Timed(vfs.OS, func() int64 { return 0 }, func(int64) {}), t.TempDir()
	})
}

// Every sync of every file is told of, however the file was opened, and failed ones too.
func TestTimed(t *testing.T) {
	now := int64(0)
	var took []int64
	faulty := faultfs.New(memfs.New())
	fs := vfs.Timed(faulty, func() int64 { now += 7; return now }, func(ns int64) { took = append(took, ns) })
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
	if want := []int64{7, 7, 7, 7}; !slices.Equal(took, want) {
		t.Errorf("syncs took %v, want %v", took, want)
	}
}
