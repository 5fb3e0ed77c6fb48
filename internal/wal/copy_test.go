package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A writingFS writes to the log when the n-th file is opened, as another process would
// during a copy.
type writingFS struct {
	vfs.FS
	n     int
	write func()
}

func (w *writingFS) Open(name string) (vfs.File, error) {
	if w.n--; w.n == 0 {
		w.write()
	}
	return w.FS.Open(name)
}

// Records or segments can be added or removed during a copy. The copy contains a prefix
// of the log with all records from before the copy, or Copy returns an error after which
// it can be repeated.
func TestCopy(t *testing.T) {
	again := 0
	for n := range 25 {
		disk := memfs.New()
		must(t, disk.Mkdir("/copy"))
		l := mustOpen(t, disk, Options{SegmentSize: 512})
		var all []string
		write := func(records int) {
			for range records {
				all = append(all, fmt.Sprintf("%d%s", len(all), strings.Repeat("x", 60)))
				appendAll(t, l, all[len(all)-1])
			}
			must(t, l.Sync())
		}
		write(20)
		before := len(all)
		err := Copy(&writingFS{disk, n, func() {
			write(n % 8)
			if n%3 == 0 {
				must(t, l.RemoveOldest())
				must(t, l.Sync())
				must(t, l.Prepare())
			}
			_, err := l.Append([]byte("not written whole")) // never flushed
			must(t, err)
		}}, testDir, "/copy")
		var copied *Log
		var got []string
		var report Report
		if err == nil {
			copied, err = Open(disk, "/copy", Options{SegmentSize: 512})
		}
		if err == nil {
			got, report, err = replayAll(copied)
		}
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrCorrupt) {
				t.Fatalf("written at file %d: %v", n, err)
			}
			again++
			continue
		}
		if len(report.Torn) > 0 || len(got) == 0 {
			t.Fatalf("written at file %d: %d records, %+v", n, len(got), report)
		}
		first := slices.Index(all, got[0]) // older records can be missing
		if first > before || !slices.Equal(got, all[first:first+len(got)]) || first+len(got) < before {
			t.Errorf("written at file %d: records %.9q", n, got)
		}
		must(t, copied.Close())
	}
	if again > 10 {
		t.Errorf("%d of 25 copies have to be made again", again)
	}
}
