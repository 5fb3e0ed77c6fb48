package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// After a cut of any file at any place, a start finds a prefix of the jobs, or refuses.
// Only the newest segment can contain a torn write.
func TestCutAnywhere(t *testing.T) {
	fsys := memfs.New()
	if err := fsys.Mkdir("/a"); err != nil {
		t.Fatal(err)
	}
	writeTheirs(t, fsys, "/a", 1, 2, 3, 4, 5, 6)
	j := New(Options{SegmentSize: wal.MinSegmentSize})
	eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
	if _, err := j.Open(fsys, "/a", eng); err != nil {
		t.Fatal(err)
	}
	s := eng.Open(nil)
	eng.Use(s, []byte("a"))
	for id := 7; id <= 9; id++ {
		eng.Put(0, s, engine.Spec{TTR: 1}, fmt.Appendf(nil, "/a %d", id))
		eng.Pause(0, []byte("a"), uint32(id))
	}
	if err := errors.Join(j.Append(eng.TakeChanges()), j.Close()); err != nil {
		t.Fatal(err)
	}
	all := strings.Split(jobsOf(eng), ", ")

	newest, started := "", 0
	names, _ := fsys.List("/a")
	for _, name := range names {
		if strings.HasSuffix(name, ".wal") && !isSpare(t, fsys, name) {
			newest = name
		}
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".wal") {
			continue
		}
		size, _ := fsys.Size("/a/" + name)
		step := int64(5)
		if name == newest {
			step = 1
		}
		for n := int64(0); n < size; n += step {
			cut := fsys.Crash(rand.New(rand.NewPCG(1, 2))) // a copy: all is synced
			f, err := cut.OpenWrite("/a/" + name)
			if err == nil {
				err = errors.Join(f.Truncate(n), f.Sync(), f.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
			jobs, err := jobsIn(t, cut, "/a")
			switch {
			case err != nil:
				continue
			case jobs == strings.Join(all, ", "):
			case name != newest:
				t.Fatalf("%s cut to %d of %d bytes: the start finds %q", name, n, size, jobs)
			case !strings.HasPrefix(strings.Join(all, ", ")+", ", jobs+", "):
				t.Fatalf("%s cut to %d of %d bytes: the start finds %q, which are not the first jobs", name, n, size, jobs)
			}
			started++
		}
	}
	if started == 0 {
		t.Error("no start succeeded")
	}
}

// isSpare reports whether a segment contains no records.
func isSpare(t *testing.T, fsys *memfs.FS, name string) bool {
	t.Helper()
	f, err := fsys.Open("/a/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, _ := f.Size()
	b := make([]byte, size)
	f.ReadAt(b, 0)
	return len(strings.Trim(string(b[min(48, len(b)):]), "\x00")) == 0
}
