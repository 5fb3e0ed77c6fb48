package main

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
	memoryWorth  = 32 << 20 // bytes; less is not worth a collection
)

// giveMemoryBack gives memory back to the system when the queue has shrunk, or
// clients are gone. The runtime would do so by itself, but after minutes, since a
// server with less to do allocates nothing and so gives the collector no reason to
// run. It ends with ctx.
func giveMemoryBack(ctx context.Context, q *queue) {
	ticks := time.NewTicker(memoryPeriod)
	defer ticks.Stop()
	var last memoryUse
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		if now := memoryNow(q); now.worthCleaning(last) {
			runtime.GC() // buffers in a sync.Pool survive one collection
			debug.FreeOSMemory()
			last = memoryNow(q)
		}
	}
}

// A memoryUse is what the heap takes from the system.
type memoryUse struct {
	others   int64  // bytes beside jobs and input buffers
	sessions uint64 // what else there is belongs to them, mostly
}

func memoryNow(q *queue) memoryUse {
	use := memoryUse{others: -conversation.InputMemory()}
	q.broker.Call(func(e *engine.Engine, _ int64) {
		use.others -= e.Memory()
		use.sessions = e.Stats().Sessions
	})
	use.others += heapHeld()
	return use
}

// worthCleaning reports whether enough is held that nothing is known to use, given
// what was held after the last time.
func (now memoryUse) worthCleaning(last memoryUse) bool {
	if now.others > last.others+last.others/4+memoryWorth {
		return true
	}
	return now.others > memoryWorth && now.sessions < last.sessions-last.sessions/4
}

// heapHeld returns how much of the system's memory the heap holds, in bytes.
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
