package daemon

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

const (
	memoryPeriod = 5 * time.Second
	memoryWorth  = 32 << 20 // bytes; a smaller amount is not worth a collection
)

// freeOSMemory returns memory to the system when the queue has shrunk, until ctx is
// canceled. The runtime would take minutes to do that, because an idle server allocates
// nothing and so does not start the garbage collector.
func freeOSMemory(ctx context.Context, q *queue) {
	ticks := time.NewTicker(memoryPeriod)
	defer ticks.Stop()
	last := int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		switch now := withoutJobs(q); {
		case now > last+last/4+memoryWorth:
			runtime.GC() // buffers in a sync.Pool survive one collection
			debug.FreeOSMemory()
			last = withoutJobs(q)
		case now < last:
			last = now
		}
	}
}

// withoutJobs returns the bytes of the heap, including garbage, that are not jobs.
func withoutJobs(q *queue) (n int64) {
	q.broker.View(func(e *engine.Engine, _ int64) { n = -e.Memory() })
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return n + int64(m.HeapSys-m.HeapReleased)
}
