package wal

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

// Somebody cuts a file of an open log short. Whatever the log does with the file next,
// it never gets its length back without its bytes.
func TestCutShort(t *testing.T) {
	for name, test := range map[string]struct {
		segment uint64 // that is cut
		before  func(t *testing.T, l *Log, fsys *faultfs.FS)
		after   func(t *testing.T, l *Log, fsys *faultfs.FS)
	}{
		"a sealed segment, when it gets the name of the next": {
			segment: 1,
			before: func(t *testing.T, l *Log, _ *faultfs.FS) {
				for len(l.sealed) == 0 {
					appendAll(t, l, "a record")
				}
				must(t, l.Sync())
			},
			after: func(t *testing.T, l *Log, _ *faultfs.FS) {
				if l.SuccessorPending() {
					t.Fatal("the next one is not durable")
				}
				if err := l.Prepare(); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("prepare: %v", err)
				}
			},
		},
		"the segment that is written, when it is complete": {
			segment: 1,
			before: func(t *testing.T, l *Log, _ *faultfs.FS) {
				appendAll(t, l, "a record")
			},
			after: func(t *testing.T, l *Log, _ *faultfs.FS) {
				for len(l.open) == 1 {
					_, err := l.Append([]byte("a record"))
					must(t, err)
				}
				if lost, ok := errors.AsType[*LostError](l.Flush()); !ok || lost.Sequence != 1 {
					t.Errorf("flush: %v", lost)
				}
			},
		},
		"a segment that has failed, when the log heals": {
			segment: 1,
			before: func(t *testing.T, l *Log, fsys *faultfs.FS) {
				appendAll(t, l, "durable")
				must(t, l.Sync())
				fsys.Set(faultfs.Fault{Op: faultfs.Sync, Sticky: true})
				_, err := l.Append([]byte("not durable"))
				must(t, errors.Join(err, l.Flush()))
				if err := l.Sync(); !errors.Is(err, syscall.EIO) {
					t.Fatalf("sync: %v", err)
				}
			},
			after: func(t *testing.T, l *Log, fsys *faultfs.FS) {
				fsys.Set()
				must(t, l.Recover(nil))
			},
		},
		"a preallocated segment, when it is filled with zeros": {
			segment: 2,
			before: func(t *testing.T, l *Log, _ *faultfs.FS) {
				appendAll(t, l, "a record")
				must(t, l.pool.grow(1))
			},
			after: func(t *testing.T, l *Log, _ *faultfs.FS) {
				if err := l.Prepare(); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("prepare: %v", err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := memfs.New()
			fsys := faultfs.New(disk)
			l := mustOpen(t, fsys, Options{SegmentSize: 512})
			test.before(t, l, fsys)
			f, err := disk.OpenWrite(l.pool.path(test.segment))
			must(t, err)
			must(t, errors.Join(f.Truncate(headerSize-1), f.Close()))
			test.after(t, l, fsys)
			if size, err := disk.Size(l.pool.path(test.segment)); err == nil && size >= headerSize {
				t.Errorf("the file has %d bytes again", size)
			}
			_ = l.Close()
		})
	}
}
