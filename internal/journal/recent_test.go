package journal

import (
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// The journal knows of each record that is not durable where it is, for when the
// log heals, and does not keep many others.
func TestRecentRecords(t *testing.T) {
	// Neither sync comes by itself: no time passes.
	for name, opt := range map[string]Options{"never": {Sync: -1}, "later": {Sync: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, opt)
			unsynced := 0 // puts since the last sync
			for n := range 5000 {
				b.turn(func() { b.put(engine.Spec{}, n%50) })
				unsynced++
				durable := b.log.files.Durable()
				known := 0
				for i, p := range b.log.recent {
					if i > 0 && b.log.recent[i-1].at.Compare(p.at) >= 0 {
						t.Fatalf("turn %d: not in the order of the log", n)
					}
					if p.at.Compare(durable) >= 0 {
						known++
					}
				}
				if known != unsynced {
					t.Fatalf("turn %d: %d of %d records that are not durable are known", n, known, unsynced)
				}
				if surplus := len(b.log.recent) - known; surplus > known+1 {
					t.Fatalf("turn %d: %d records are remembered, %d are not durable", n, len(b.log.recent), known)
				}
				if n%700 == 699 {
					b.log.syncing.wait()
					if err := b.log.files.Sync(); err != nil {
						t.Fatal(err)
					}
					unsynced = 0
				}
			}
		})
	}
}

// Without a sync that anybody is promised, a full segment has little left to be
// synced within the turn that fills it.
func TestLittleIsUnsynced(t *testing.T) {
	for name, opt := range map[string]Options{"never": {Sync: -1}, "later": {Sync: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			opt.SegmentSize = 64 << 10
			b := newBench(t, opt)
			most := int64(0)
			for range 2000 {
				b.turn(func() { b.put(engine.Spec{}, 100) })
				last, durable := b.log.recent[len(b.log.recent)-1].at, b.log.files.Durable()
				if last.Segment == durable.Segment {
					most = max(most, last.Offset-durable.Offset)
				}
			}
			if limit := opt.SegmentSize/unsyncedShare + 1<<10; most > limit {
				t.Errorf("%d bytes were not durable, want at most %d", most, limit)
			}
		})
	}
}
