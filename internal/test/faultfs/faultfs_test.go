package faultfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/test/vfstest"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

func TestContract(t *testing.T) {
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) { return faultfs.New(memfs.New()), "/" })
}

// Each kind of failed write returns the right error and has the right effect.
func TestWrite(t *testing.T) {
	for _, test := range []struct {
		how  faultfs.How
		n    int
		left string
	}{
		{faultfs.Before, 0, ""},
		{faultfs.After, 0, "abcd"},
		{faultfs.Short, 2, "ab"},
	} {
		base := memfs.New()
		fsys := faultfs.New(base, faultfs.Fault{Op: faultfs.Write, How: test.how, Err: syscall.EDQUOT})
		f, err := fsys.Create("/a")
		if err != nil {
			t.Fatal(err)
		}
		n, err := f.WriteAt([]byte("abcd"), 0)
		if n != test.n || !errors.Is(err, syscall.EDQUOT) {
			t.Errorf("%v: write: %d, %v; want %d, EDQUOT", test.how, n, err, test.n)
		}
		left := make([]byte, 8)
		n, _ = f.ReadAt(left, 0)
		if string(left[:n]) != test.left {
			t.Errorf("%v: left %q, want %q", test.how, left[:n], test.left)
		}
		if _, err := f.WriteAt([]byte("abcd"), 0); err != nil {
			t.Errorf("%v: second write: %v", test.how, err)
		}
	}
}

// Only the n-th matching call fails, or with Sticky, this call and all later calls. Calls
// on other names neither fail nor count.
func TestCounting(t *testing.T) {
	for _, sticky := range []bool{false, true} {
		fsys := faultfs.New(memfs.New(), faultfs.Fault{Op: faultfs.Change, Name: "*.wal", N: 2, Sticky: sticky})
		var failed bytes.Buffer
		for _, name := range []string{"/1.wal", "/x", "/2.wal", "/3.wal"} {
			if _, err := fsys.Create(name); err != nil {
				fmt.Fprint(&failed, name, " ")
			}
		}
		want := "/2.wal "
		if sticky {
			want = "/2.wal /3.wal "
		}
		if failed.String() != want {
			t.Errorf("sticky %v: failed: %q, want %q", sticky, failed.String(), want)
		}
		if fsys.Seen() != 3 {
			t.Errorf("sticky %v: seen %d, want 3", sticky, fsys.Seen())
		}
		fsys.Set()
		if _, err := fsys.Create("/4.wal"); err != nil || fsys.Fired() != 0 {
			t.Errorf("sticky %v: after Set: %v, fired %d", sticky, err, fsys.Fired())
		}
	}
}

// A call with the fault After takes effect, and then fails.
func TestAfter(t *testing.T) {
	base := memfs.New()
	fsys := faultfs.New(base, faultfs.Fault{Op: faultfs.Create, How: faultfs.After})
	if _, err := fsys.Create("/a"); !errors.Is(err, syscall.EIO) {
		t.Fatalf("create: %v, want EIO", err)
	}
	if there, err := vfs.Exists(base, "/a"); !there {
		t.Errorf("the file was not created: %v", err)
	}
	fsys.Set(faultfs.Fault{Op: faultfs.Remove, How: faultfs.After})
	if err := fsys.Remove("/a"); !errors.Is(err, syscall.EIO) {
		t.Fatalf("remove: %v, want EIO", err)
	}
	if there, err := vfs.Exists(base, "/a"); there || err != nil {
		t.Errorf("the file was not removed: %v", err)
	}
}
