package memfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/test/vfstest"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

func TestContract(t *testing.T) {
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
		fsys := memfs.New()
		if err := fsys.Mkdir("/d"); err != nil {
			t.Fatal(err)
		}
		return fsys, "/d"
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, fsys vfs.FS, name string) vfs.File {
	t.Helper()
	f, err := fsys.Create(name)
	must(t, err)
	return f
}

func write(t *testing.T, f vfs.File, content string, off int64) {
	t.Helper()
	_, err := f.WriteAt([]byte(content), off)
	must(t, err)
}

// outcomes crashes the file system with many seeds and returns the set of the resulting
// descriptions.
func outcomes(fsys *memfs.FS, describe func(*memfs.FS) string) map[string]bool {
	seen := make(map[string]bool)
	for seed := range uint64(400) {
		seen[describe(fsys.Crash(rand.New(rand.NewPCG(seed, 1))))] = true
	}
	return seen
}

// content describes a file: "missing", or its bytes with shortened runs.
func content(fsys *memfs.FS, name string) string {
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "missing"
	}
	size, _, _ := f.Stat()
	p := make([]byte, size)
	f.ReadAt(p, 0)
	var b bytes.Buffer
	for len(p) > 0 {
		run := len(p) - len(bytes.TrimLeft(p, string(p[:1])))
		fmt.Fprintf(&b, "%s%d ", bytes.ReplaceAll(p[:1], []byte{0}, []byte{'-'}), run)
		p = p[run:]
	}
	return b.String()
}

func sectors(content string) string {
	return string(bytes.Repeat([]byte(content), 512/len(content)))
}

// Synced data survives every crash, regardless of later operations.
func TestSyncedSurvives(t *testing.T) {
	fsys := memfs.New()
	f := create(t, fsys, "/a")
	write(t, f, sectors("a")+sectors("b"), 0)
	must(t, f.Sync())
	must(t, fsys.SyncDir("/"))
	write(t, create(t, fsys, "/other"), "unsynced", 0)
	got := outcomes(fsys, func(fsys *memfs.FS) string { return content(fsys, "/a") })
	if len(got) != 1 || !got["a512 b512 "] {
		t.Errorf("outcomes: %v", got)
	}
}

// Each unsynced sector is kept or lost separately. The size can become durable before the
// bytes. If the newest write to a sector is kept, the older writes are also kept.
func TestUnsyncedWrites(t *testing.T) {
	fsys := memfs.New()
	f := create(t, fsys, "/a")
	must(t, fsys.SyncDir("/"))
	write(t, f, sectors("a"), 0)
	must(t, f.Sync())
	write(t, f, sectors("b"), 0)
	write(t, f, sectors("c"), 512)
	write(t, f, "d", 0)
	got := outcomes(fsys, func(fsys *memfs.FS) string { return content(fsys, "/a") })
	for _, want := range []string{"a512 ", "b512 ", "a512 c512 ", "a512 -512 ", "b512 c512 ", "d1 b511 c512 ", "d1 b511 -512 "} {
		if !got[want] {
			t.Errorf("outcome %q did not occur", want)
		}
	}
	for s := range got {
		if bytes.HasPrefix([]byte(s), []byte("d1 a")) {
			t.Errorf("outcome %q has the newer write without the older one", s)
		}
	}
	torn := 0
	for s := range got {
		if bytes.Contains([]byte(s), []byte("a")) && bytes.Contains([]byte(s), []byte("b")) {
			torn++
		}
	}
	if torn == 0 {
		t.Error("no outcome has a torn sector")
	}
}

// An unsynced truncation can be undone. The bytes that it removed can then be old bytes
// or zeros. Preallocated space contains zeros.
func TestUnsyncedSizes(t *testing.T) {
	fsys := memfs.New()
	f := create(t, fsys, "/a")
	must(t, fsys.SyncDir("/"))
	write(t, f, sectors("a")+sectors("a"), 0)
	must(t, f.Sync())
	must(t, f.Truncate(512))
	must(t, f.Preallocate(1536))
	got := outcomes(fsys, func(fsys *memfs.FS) string { return content(fsys, "/a") })
	want := []string{"a512 ", "a1024 ", "a512 -512 ", "a512 -1024 ", "a1024 -512 "}
	for s := range got {
		if !slices.Contains(want, s) && !bytes.HasPrefix([]byte(s), []byte("a")) {
			t.Errorf("impossible outcome %q", s)
		}
	}
	for _, s := range want {
		if !got[s] {
			t.Errorf("outcome %q did not occur", s)
		}
	}
}

// Until the directory is synced, each change of a name is kept or lost separately. A
// rename always leaves one of the names.
func TestUnsyncedNames(t *testing.T) {
	fsys := memfs.New()
	f := create(t, fsys, "/old")
	write(t, f, "x", 0)
	must(t, f.Sync())
	create(t, fsys, "/gone")
	must(t, fsys.SyncDir("/"))
	must(t, fsys.Rename("/old", "/new"))
	must(t, fsys.Remove("/gone"))
	create(t, fsys, "/made")
	list := func(fsys *memfs.FS) string {
		names, _ := fsys.List("/")
		return fmt.Sprint(names)
	}
	got := outcomes(fsys, list)
	want := map[string]bool{
		"[gone old]": true, "[gone made old]": true, "[old]": true, "[made old]": true,
		"[gone new]": true, "[gone made new]": true, "[new]": true, "[made new]": true,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("outcomes: %v\nwant %v", got, want)
	}
	must(t, fsys.SyncDir("/"))
	if got := outcomes(fsys, list); len(got) != 1 || !got["[made new]"] {
		t.Errorf("after SyncDir: %v", got)
	}
}

// After CutAt, operations have no effect and fail.
func TestCutAt(t *testing.T) {
	for cut := 1; cut <= 4; cut++ {
		fsys := memfs.New()
		fsys.CutAt(cut)
		var failed []string
		note := func(what string, err error) {
			if errors.Is(err, memfs.ErrPowerCut) {
				failed = append(failed, what)
			} else if err != nil {
				t.Fatal(err)
			}
		}
		f, err := fsys.Create("/a")
		note("create", err)
		if err == nil {
			_, err = f.WriteAt([]byte("x"), 0)
			note("write", err)
			note("sync", f.Sync())
		}
		note("syncdir", fsys.SyncDir("/"))
		_, err = fsys.List("/")
		note("list", err)
		want := []string{"create", "write", "sync", "syncdir", "list"}[cut-1:]
		if cut == 1 {
			want = []string{"create", "syncdir", "list"}
		}
		if !slices.Equal(failed, want) {
			t.Errorf("cut at %d: failed: %v, want %v", cut, failed, want)
		}
		got := outcomes(fsys, func(fsys *memfs.FS) string { return content(fsys, "/a") })
		if written := cut > 2; got["x1 "] != written {
			t.Errorf("cut at %d: outcomes %v", cut, got)
		}
	}
}

// A full disk accepts as many bytes as fit, and regains space when a file is truncated or
// removed.
func TestLimit(t *testing.T) {
	fsys := memfs.New()
	fsys.SetLimit(8192)
	f := create(t, fsys, "/a")
	if err := f.Preallocate(8193); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("preallocate: %v, want ENOSPC", err)
	}
	if size, _, _ := f.Stat(); size != 0 || fsys.Used() != 0 {
		t.Errorf("after a failed Preallocate: size %d, used %d", size, fsys.Used())
	}
	must(t, f.Preallocate(4096))
	g := create(t, fsys, "/b")
	if n, err := g.WriteAt(make([]byte, 5000), 0); n != 4096 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write: %d, %v; want 4096, ENOSPC", n, err)
	}
	write(t, f, "in reserved space", 4000)
	if free, _ := fsys.Free("/"); free != 0 {
		t.Errorf("free: %d", free)
	}
	must(t, g.Truncate(0))
	write(t, f, "x", 5000)
	must(t, fsys.Remove("/a"))
	if fsys.Used() != 8192 {
		t.Errorf("a removed open file uses %d, want 8192", fsys.Used())
	}
	must(t, f.Close())
	if fsys.Used() != 0 {
		t.Errorf("used %d after all files were removed", fsys.Used())
	}
}
