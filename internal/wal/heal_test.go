package wal

import (
	"errors"
	"syscall"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/vfs/faultfs"
	"github.com/beanpole-mq/beanpole/internal/vfs/memfs"
)

// A segment is removed by a record that is not flushed when a sync fails, and the
// attempts to heal fail too. Until one works nothing on the disk says that the
// segment may go: its file stays.
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
	if _, err := disk.Size(l.path(oldest.Sequence)); err != nil {
		t.Errorf("the oldest segment: %v", err)
	}
	mustOpen(t, disk.Crash(newRand(1)), Options{SegmentSize: 512})

	fsys.Set()
	must(t, l.Recover(nil))
	if _, pending := l.RemovalPending(); pending {
		t.Error("the removal waits although the log has healed")
	}
	must(t, l.Prepare())
	if _, err := disk.Size(l.path(oldest.Sequence)); err == nil {
		t.Error("the oldest segment is still there after the log has healed")
	}
	must(t, l.Close())
}
