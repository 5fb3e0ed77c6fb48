package journal

import (
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// wake runs the turns that the journal requests, and no others, for ten seconds. The
// first turn is at next.
func (b *bench) wake(next int64) {
	b.tb.Helper()
	for until := b.now + 10*healPause; next < until; {
		b.now = max(b.now, next)
		next = b.turn(func() {})
	}
}

// The health reports files that the background goroutine could not create. Housekeep
// creates them later, even if there are no other turns.
func TestPreparingFailsAtRest(t *testing.T) {
	b := newSickBench(t)
	b.rest()
	b.fsys.Set(faultfs.Fault{Op: faultfs.Create, Sticky: true})
	next := int64(engine.Never)
	for !b.log.files.NeedsPrepare() {
		next = b.turn(func() { b.put(engine.Spec{}, segment/2) })
	}
	b.wake(next)
	b.wantHealth("cannot create or remove")
	b.fsys.Set()
	b.wake(b.log.preparer.failedAt + healPause)
	b.wantHealth("")
	if b.log.files.NeedsPrepare() {
		t.Error("the files were not made")
	}
}

// Work that arrives while the background goroutine is busy is done later, even if there
// are no other turns.
func TestPreparingIsBusyAtRest(t *testing.T) {
	b := newSickBench(t)
	held := make(chan bool)
	b.log.preparer.start(func() error { <-held; return nil })
	next := b.log.Housekeep(b.now)
	close(held)
	b.log.preparer.wait()
	b.wake(next)
	if b.log.files.NeedsPrepare() {
		t.Error("the files were not made")
	}
}

// The journal heals after a failed sync in the background, even if Options.Sync is
// negative and there are no other turns.
func TestUnpromisedSyncFailsAtRest(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	b := &bench{tb: t}
	b.start(fsys, Options{SegmentSize: segment, Sync: -1})
	b.turn(func() { b.put(engine.Spec{}, 100) })
	b.rest()
	before := b.log.Stats().Current
	fsys.Set(faultfs.Fault{Op: faultfs.Sync, Name: wal.FileName(before), Sticky: true})
	next := b.turn(func() { b.put(engine.Spec{}, segment/2) })
	b.wake(next)
	if err := b.log.files.Err(); err != nil || b.log.Stats().Current == before {
		t.Errorf("it did not heal: %v", err)
	}
}
