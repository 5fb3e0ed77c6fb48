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

// freeOSMemory returns memory to the system when the queue has shrunk or clients have
// disconnected, until ctx is canceled. The runtime would take minutes to do that, because
// an idle server allocates nothing and so does not start the garbage collector.
func freeOSMemory(ctx context.Context, q *queue) {
	ticks := time.NewTicker(memoryPeriod)
	defer ticks.Stop()
	var last memoryUse
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		if now := memoryNow(q); now.worthCollecting(last) {
			runtime.GC() // buffers in a sync.Pool survive one collection
			debug.FreeOSMemory()
			last = memoryNow(q)
		}
	}
}

// A memoryUse describes the heap.
type memoryUse struct {
	unaccounted int64  // bytes that are neither jobs nor input buffers
	sessions    uint64 // number of sessions, to which most of those bytes belong
}

func memoryNow(q *queue) memoryUse {
	use := memoryUse{unaccounted: -conversation.InputMemory()}
	q.broker.View(func(e *engine.Engine, _ int64) {
		use.unaccounted -= e.Memory()
		use.sessions = e.Stats().Sessions
	})
	use.unaccounted += heapHeld()
	return use
}

// worthCollecting reports whether the heap is much larger than after the last collection,
// or is still large although many sessions have ended.
func (now memoryUse) worthCollecting(last memoryUse) bool {
	if now.unaccounted > last.unaccounted+last.unaccounted/4+memoryWorth {
		return true
	}
	return now.unaccounted > memoryWorth && now.sessions < last.sessions-last.sessions/4
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
