package journal

import (
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// If no sync is promised, the turn that fills a segment has to sync only a small part of
// it.
func TestLittleIsUnsynced(t *testing.T) {
	for name, opt := range map[string]Options{"never": {Sync: -1}, "later": {Sync: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			opt.SegmentSize = 64 << 10
			b := newBench(t, opt)
			most := int64(0)
			for range 2000 {
				b.turn(func() { b.put(engine.Spec{}, 100) })
				b.log.syncer.wait()
				most = max(most, b.log.syncer.unsynced)
			}
			if limit := opt.SegmentSize/unsyncedShare + 1<<10; most > limit {
				t.Errorf("%d bytes were not durable, want at most %d", most, limit)
			}
		})
	}
}
