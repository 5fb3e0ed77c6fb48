package wal

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A sync fails before the record of a segment's removal is flushed, and the attempts to
// heal also fail. Until an attempt succeeds, the disk contains no record of the removal,
// and the segment's file stays.
func TestRemovalWaitsForHealing(t *testing.T) {
	disk := memfs.New()
	fsys := faultfs.New(disk)
	l := mustOpen(t, fsys, Options{SegmentSize: 512})
	for len(l.sealed) < 2 {
		appendAll(t, l, "some record")
	}
	must(t, l.Prepare())
	oldest, _ := l.Oldest()

	_, err := l.Append([]byte("not durable"))
	must(t, errors.Join(err, l.Flush(), l.RemoveOldest()))
	fsys.Set(faultfs.Fault{Op: faultfs.Sync, Sticky: true})
	if err := l.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("sync: %v, want EIO", err)
	}
	for range 3 {
		if err := l.Recover(nil); !errors.Is(err, syscall.EIO) {
			t.Fatalf("recover: %v, want EIO", err)
		}
		_ = l.Prepare()
	}
	if there, err := vfs.Exists(disk, l.pool.path(oldest.Sequence)); !there {
		t.Errorf("the oldest segment is missing: %v", err)
	}
	mustOpen(t, disk.Crash(newRand(1)), Options{SegmentSize: 512})

	fsys.Set()
	must(t, l.Recover(nil))
	if _, pending := l.RemovalPending(); pending {
		t.Error("the removal still waits after the log has healed")
	}
	must(t, l.Prepare())
	if there, _ := vfs.Exists(disk, l.pool.path(oldest.Sequence)); there {
		t.Error("the oldest segment still exists after the log has healed")
	}
	must(t, l.Close())
}

// If an attempt to heal fails, it removes the segments that it has written. A power cut
// can undo any of these removals, and the log still opens.
func TestPowerCutAfterFailedHealing(t *testing.T) {
	failed := 0
	for n := 1; n <= 40; n++ {
		disk := memfs.New()
		fsys := faultfs.New(disk)
		l := mustOpen(t, fsys, Options{SegmentSize: 512})
		appendAll(t, l, "durable")
		must(t, l.Sync())
		for range 30 { // fill several segments
			_, err := l.Append([]byte("some record that is not durable, and is written again"))
			must(t, err)
		}
		fsys.Set(faultfs.Fault{Op: faultfs.Write})
		if err := l.Flush(); !errors.Is(err, syscall.EIO) {
			t.Fatalf("flush: %v, want EIO", err)
		}
		fsys.Set(faultfs.Fault{Op: faultfs.Sync, N: n})
		if l.Recover(nil) == nil {
			continue
		}
		failed++
		fsys.Set()
		for seed := range uint64(50) {
			after := mustOpen(t, disk.Crash(newRand(seed)), Options{SegmentSize: 512})
			must(t, after.Close())
		}
	}
	if failed < 3 {
		t.Errorf("%d attempts to heal have failed, in too few ways", failed)
	}
}

// The power fails while the log heals. Healing writes copies of a segment's records and
// then repeats the segment's removal. The segment counts until the copies are durable.
func TestRemovalFollowsCopies(t *testing.T) {
	original, copied := strings.Repeat("original ", 250), strings.Repeat("a copy ", 350)
	for seed := range uint64(200) {
		disk := memfs.New()
		fsys := faultfs.New(disk)
		l := mustOpen(t, fsys, Options{SegmentSize: 4096})
		for len(l.sealed) < 1 {
			appendAll(t, l, original)
		}
		must(t, l.Prepare())
		_, err := l.Append([]byte(copied))
		must(t, errors.Join(err, l.RemoveOldest(), l.Flush()))
		fsys.Set(faultfs.Fault{Op: faultfs.Sync, Sticky: true}) // the attempt to heal fails as well
		if l.Sync() == nil || l.Recover(nil) == nil {
			t.Fatal("the log did not fail")
		}
		after, err := Open(disk.Crash(newRand(seed)), testDir, Options{})
		must(t, err)
		records, _, err := replayAll(after)
		must(t, err)
		if !slices.Contains(records, original) && !slices.Contains(records, copied) {
			t.Fatalf("crash %d: the oldest record and its copy are missing", seed)
		}
		must(t, after.Close())
	}
}
