package daemon

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/beanpole-mq/beanpole/internal/conversation"
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
		switch now := unaccounted(q); {
		case now > last+last/4+memoryWorth:
			runtime.GC() // buffers in a sync.Pool survive one collection
			debug.FreeOSMemory()
			last = unaccounted(q)
		case now < last:
			last = now
		}
	}
}

// unaccounted returns the bytes of the heap that are neither jobs nor input buffers.
func unaccounted(q *queue) (n int64) {
	n = -conversation.InputMemory()
	q.broker.View(func(e *engine.Engine, _ int64) { n -= e.Memory() })
	return n + heapHeld()
}

// heapHeld returns the size of the heap's memory, in bytes.
func heapHeld() int64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	held := uint64(0)
	for _, s := range samples {
		held += s.Value.Uint64()
	}
	return int64(held)
}
