package sim

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A real file system that is full.
func TestFullTmpfs(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("beanpole-test", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("cannot mount a tmpfs of 2 MB (%v): this test needs the rights of root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // for Wait: the files are real
		for range 3 {
			fillTmpfs(t, dir)
		}
	})
}

// fillTmpfs fills a tmpfs of 2 MB, and deletes all jobs, once when others have filled the rest.
func fillTmpfs(t *testing.T, dir string) {
	j := journal.New(journal.Options{SegmentSize: 128 << 10})
	e := engine.New(engine.Options{Logged: true, Admit: j.Admit})
	if _, err := j.Open(vfs.OS, dir, e); err != nil {
		t.Fatal(err)
	}
	commit := func() {
		t.Helper()
		if err := errors.Join(j.Append(e.TakeChanges()), commit(j)); err != nil {
			t.Fatal(err)
		}
		j.Housekeep(0)
		synctest.Wait() // what it does in the background
	}
	s := e.Open(nil)
	put := func() (n int) {
		for ; ; n++ {
			_, o := e.Put(0, s, engine.Spec{TTR: 1}, make([]byte, 1000))
			if o == engine.OutOfMemory {
				return n
			}
			if o != engine.OK {
				t.Fatal("put: outcome", o)
			}
			commit()
		}
	}
	first := put()
	if first < 1000 {
		t.Errorf("%d jobs of 1000 bytes fit into 2 MB", first)
	}
	if err := os.WriteFile(dir+"/others", make([]byte, 4<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	for id := e.LastID(); e.Stats().Ready > 0; id-- {
		if o := e.Delete(s, id); o != engine.OK && o != engine.NotFound {
			t.Fatal("delete: outcome", o)
		}
		commit()
	}
	if err := os.Remove(dir + "/others"); err != nil {
		t.Fatal(err)
	}
	for range 100 { // cleaning
		commit()
	}
	if again := put(); again < first*3/4 {
		t.Errorf("%d jobs fitted, and when they were deleted %d", first, again)
	}
	for id := e.LastID(); e.Stats().Ready > 0; id-- {
		e.Delete(s, id)
	}
	commit()
	if err := errors.Join(e.Check(), j.Close()); err != nil {
		t.Fatal(err)
	}
}
