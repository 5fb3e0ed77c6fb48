// Package vfstest contains tests that specify the behavior of a vfs.FS. Each
// implementation runs them in its own tests:
//
//	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) { return vfs.OS, t.TempDir() })
//
// Only package memfs has tests for the state after a power failure, because a test cannot
// cut the power of a real disk.
package vfstest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// Run runs the tests. fresh returns a file system and an empty directory for each test.
func Run(t *testing.T, fresh func(t *testing.T) (fsys vfs.FS, dir string)) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, fsys vfs.FS, dir string)
	}{
		{"Create", testCreate},
		{"ReadWrite", testReadWrite},
		{"Truncate", testTruncate},
		{"Preallocate", testPreallocate},
		{"Names", testNames},
		{"RemoveOpen", testRemoveOpen},
		{"Lock", testLock},
		{"Closed", testClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			fsys, dir := fresh(t)
			test.run(t, fsys, dir)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, fsys vfs.FS, name, content string) vfs.File {
	t.Helper()
	f, err := fsys.Create(name)
	must(t, err)
	if n, err := f.WriteAt([]byte(content), 0); err != nil || n != len(content) {
		t.Fatalf("write: %d, %v", n, err)
	}
	return f
}

func expect(t *testing.T, fsys vfs.FS, name, want string) {
	t.Helper()
	if got, err := vfs.ReadFile(fsys, name); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
	}
}

func testCreate(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	if _, err := fsys.Open(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open of a missing file: %v", err)
	}
	if _, err := fsys.OpenWrite(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open for writing of a missing file: %v", err)
	}
	must(t, create(t, fsys, name, "abc").Close())
	if _, err := fsys.Create(name); !errors.Is(err, fs.ErrExist) {
		t.Errorf("create of an existing file: %v", err)
	}
	if _, err := fsys.Create(filepath.Join(dir, "no", "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("create in a missing directory: %v", err)
	}
	expect(t, fsys, name, "abc")

	f, err := fsys.OpenWrite(name)
	must(t, err)
	_, err = f.WriteAt([]byte("X"), 1)
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
	expect(t, fsys, name, "aXc")
}

func testReadWrite(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	f := create(t, fsys, name, "0123456789")
	_, err := f.WriteAt([]byte("gap"), 12)
	must(t, err)
	expect(t, fsys, name, "0123456789\x00\x00gap")

	p := make([]byte, 4)
	if n, err := f.ReadAt(p, 3); n != 4 || err != nil || string(p) != "3456" {
		t.Errorf("read inside: %d, %v, %q", n, err, p)
	}
	if n, err := f.ReadAt(p, 13); n != 2 || err != io.EOF {
		t.Errorf("read across the end: %d, %v; want 2, io.EOF itself", n, err)
	}
	if n, err := f.ReadAt(p, 100); n != 0 || err != io.EOF {
		t.Errorf("read past the end: %d, %v", n, err)
	}
	must(t, f.Close())

	r, err := fsys.Open(name)
	must(t, err)
	defer r.Close()
	if _, err := r.WriteAt(p, 0); err == nil {
		t.Error("a write to a file opened for reading succeeded")
	}
}

func testTruncate(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	f := create(t, fsys, name, "0123456789")
	defer f.Close()
	must(t, f.Truncate(3))
	expect(t, fsys, name, "012")
	must(t, f.Truncate(6))
	expect(t, fsys, name, "012\x00\x00\x00")
}

func testPreallocate(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	f := create(t, fsys, name, "abc")
	defer f.Close()
	must(t, f.Preallocate(100_000))
	want := "abc" + string(make([]byte, 100_000-3))
	expect(t, fsys, name, want)
	must(t, f.Preallocate(10))
	expect(t, fsys, name, want)
	must(t, f.Truncate(5))
	must(t, f.Preallocate(9))
	expect(t, fsys, name, want[:9])
}

func testNames(t *testing.T, fsys vfs.FS, dir string) {
	list := func(want ...string) {
		t.Helper()
		names, err := fsys.List(dir)
		must(t, err)
		if !slices.Equal(names, want) {
			t.Errorf("list: %q, want %q", names, want)
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }

	list()
	must(t, create(t, fsys, in("b"), "of b").Close())
	must(t, create(t, fsys, in("a"), "of a").Close())
	must(t, create(t, fsys, in("c"), "of c").Close())
	list("a", "b", "c")
	must(t, fsys.Rename(in("c"), in("d")))
	list("a", "b", "d")
	must(t, fsys.Rename(in("a"), in("d")))
	list("b", "d")
	expect(t, fsys, in("d"), "of a")
	must(t, fsys.Remove(in("b")))
	list("d")
	if err := fsys.Remove(in("b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("remove of a missing file: %v", err)
	}
	if err := fsys.Rename(in("b"), in("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("rename of a missing file: %v", err)
	}

	must(t, fsys.Mkdir(in("sub")))
	if err := fsys.Mkdir(in("sub")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("mkdir of an existing directory: %v", err)
	}
	must(t, create(t, fsys, filepath.Join(dir, "sub", "e"), "of e").Close())
	list("d", "sub")
	if err := fsys.Remove(in("sub")); err == nil {
		t.Error("remove removed a directory")
	}
	if err := fsys.Rename(in("d"), in("sub")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("rename to the name of a directory: %v", err)
	}
	if _, err := fsys.Open(in("sub")); !errors.Is(err, vfs.ErrNotRegular) {
		t.Errorf("open of a directory: %v", err)
	}
	if _, err := fsys.OpenWrite(in("sub")); err == nil {
		t.Error("a directory was opened for writing")
	}
	must(t, fsys.SyncDir(dir))
	if err := fsys.SyncDir(in("missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("sync of a missing directory: %v", err)
	}
	if _, err := fsys.List(in("missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("list of a missing directory: %v", err)
	}
	if free, err := fsys.Free(dir); err != nil || free <= 0 {
		t.Errorf("free: %d, %v", free, err)
	}
}

// A removed or renamed file is still usable through its handles.
func testRemoveOpen(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	f := create(t, fsys, name, "abc")
	defer f.Close()
	named := func(want bool) {
		t.Helper()
		if size, got, err := f.Stat(); size < 3 || got != want || err != nil {
			t.Errorf("the file has %d bytes and a name: %v, %v", size, got, err)
		}
	}
	named(true)
	must(t, fsys.Rename(name, name+"2"))
	named(true)
	_, err := f.WriteAt([]byte("d"), 3)
	must(t, err)
	expect(t, fsys, name+"2", "abcd")
	must(t, fsys.Remove(name+"2"))
	p := make([]byte, 4)
	_, err = f.ReadAt(p, 0)
	must(t, err)
	if !bytes.Equal(p, []byte("abcd")) {
		t.Errorf("after its removal the file reads %q", p)
	}
	named(false)
	must(t, create(t, fsys, name+"2", "new").Close())
	named(false)
	expect(t, fsys, name+"2", "new")
}

func testLock(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "lock")
	first, err := fsys.Lock(name)
	must(t, err)
	if _, err := fsys.Lock(name); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("second lock: %v, want ErrLocked", err)
	}
	must(t, fsys.Rename(name, name+"2"))
	second, err := fsys.Lock(name)
	must(t, err)
	if _, err := fsys.Lock(name + "2"); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("second lock of a file that was renamed: %v, want ErrLocked", err)
	}
	must(t, first.Close())
	must(t, fsys.Remove(name+"2"))
	first = second
	other, err := fsys.Lock(filepath.Join(dir, "other"))
	must(t, err)
	must(t, other.Close())
	must(t, first.Close())
	if there, err := vfs.Exists(fsys, name); !there {
		t.Errorf("the lock file was removed: %v", err)
	}
	again, err := fsys.Lock(name)
	must(t, err)
	must(t, again.Close())
	if _, err := fsys.Lock(filepath.Join(dir, "missing", "lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("lock in a missing directory: %v", err)
	}
}

func testClosed(t *testing.T, fsys vfs.FS, dir string) {
	f := create(t, fsys, filepath.Join(dir, "a"), "abc")
	must(t, f.Close())
	for op, call := range map[string]func() error{
		"read":        func() error { _, err := f.ReadAt(make([]byte, 1), 0); return err },
		"write":       func() error { _, err := f.WriteAt(make([]byte, 1), 0); return err },
		"stat":        func() error { _, _, err := f.Stat(); return err },
		"truncate":    func() error { return f.Truncate(0) },
		"preallocate": func() error { return f.Preallocate(10) },
		"sync":        f.Sync,
		"close":       f.Close,
	} {
		if err := call(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s of a closed file: %v, want fs.ErrClosed", op, err)
		}
	}
	expect(t, fsys, filepath.Join(dir, "a"), "abc")
}
