package wal

import (
	"bytes"
	"errors"
	"slices"
	"syscall"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

// After a log was closed or its process killed, other programs fill the disk. The next
// process can make all reservations again, except those in the free space of the last
// written segment.
func TestPreallocatedOutliveTheProcess(t *testing.T) {
	for _, kill := range []bool{false, true} {
		fsys := memfs.New()
		opt := Options{SegmentSize: 4096, LogID: 7}
		l := mustOpen(t, fsys, opt)
		appendAll(t, l, "a", "b")
		for range 1000 {
			must(t, l.Reserve(Cost(20)))
		}
		room := l.Stats().Reserved - l.pool.usable()
		if kill {
			fsys = fsys.Crash(newRand(1))
		} else {
			must(t, l.Close())
		}
		fsys.SetLimit(1)
		l = mustOpen(t, fsys, opt)
		if st := l.Stats(); st.Room < room {
			t.Errorf("killed %v: space for %d, %d were reserved", kill, st.Room, room)
		}
		for range 900 {
			must(t, l.Reserve(Cost(20)))
		}
		for range 900 {
			l.Unreserve(Cost(20))
			_, err := l.Append(make([]byte, 20))
			must(t, err)
		}
		must(t, l.Flush())
		must(t, l.check())
		must(t, l.Close())
		// Preallocated segments of another size are removed.
		fsys.SetLimit(0)
		l = mustOpen(t, fsys, Options{SegmentSize: 8192})
		must(t, l.Close())
		if got, err := openOnce(fsys); err != nil || len(got) != 902 {
			t.Errorf("killed %v: %d records, %v", kill, len(got), err)
		}
		for name, b := range files(t, fsys) {
			if len(b) == 4096 && isBlank(b) {
				t.Errorf("killed %v: %s was not removed", kill, name)
			}
		}
	}
}

func isBlank(b []byte) bool { return len(bytes.Trim(b[headerSize:], "\x00")) == 0 }

// A preallocated segment whose file is a copy with holes is used only if the holes can be
// filled.
func TestPreallocatedWithHoles(t *testing.T) {
	fsys := memfs.New()
	opt := Options{SegmentSize: 64 << 10, LogID: 7}
	l := mustOpen(t, fsys, opt)
	appendAll(t, l, "a")
	must(t, l.Reserve(Cost(20)))
	must(t, l.Prepare())
	all := files(t, fsys)
	for _, limit := range []int64{0, 80 << 10} {
		holes := memfs.New()
		for _, name := range slices.Sorted(mapKeys(all)) {
			f, err := holes.Create(testDir + name)
			must(t, err)
			_, err = f.WriteAt(bytes.TrimRight(all[name], "\x00"), 0)
			must(t, errors.Join(err, f.Truncate(int64(len(all[name]))), f.Sync(), f.Close()))
		}
		must(t, holes.SyncDir(testDir))
		holes.SetLimit(limit)
		l := mustOpen(t, holes, opt)
		if st := l.Stats(); (st.Preallocated > 1) != (limit == 0) {
			t.Errorf("with a limit of %d: %+v", limit, st)
		}
		for {
			if _, err := l.Append(make([]byte, 1000)); errors.Is(err, syscall.ENOSPC) || limit == 0 && l.Stats().Segments > 3 {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			must(t, l.Flush()) // never detects a lack of space
		}
		must(t, l.Close())
	}
}

// The header of a file that an earlier process created is durable before records are
// written to the file, even if that process ended before the header was durable.
func TestHeaderOfAdoptedFile(t *testing.T) {
	disk := memfs.New()
	fsys := faultfs.New(disk)
	opt := Options{SegmentSize: 4096, LogID: 7}
	l := mustOpen(t, fsys, opt)
	fsys.Set(faultfs.Fault{Op: faultfs.Sync, N: 1, Sticky: true}, faultfs.Fault{Op: faultfs.Remove, N: 1, Sticky: true})
	if err := l.Reserve(Cost(20)); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Reserve: %v", err)
	}
	l.Close() // must have no effect
	fsys.Set()
	l = mustOpen(t, fsys, opt)
	if l.pool.count.Load() == 0 {
		t.Fatal("no file of the earlier process exists")
	}
	_, err := l.Append(bytes.Repeat([]byte("a"), 2000)) // several sectors
	must(t, errors.Join(err, l.Flush()))
	for seed := range uint64(100) {
		if _, err := openOnce(disk.Crash(newRand(seed))); err != nil {
			t.Fatalf("after power cut %d: %v", seed, err)
		}
	}
	must(t, l.Close())
}
