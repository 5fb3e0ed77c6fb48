package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

const (
	memoryPeriod = 5 * time.Second
	memoryWorth  = 32 << 20 // bytes; less is not worth a collection
)

// giveMemoryBack gives memory back to the system when the queue has shrunk. The
// runtime would do so by itself, but after minutes, since a queue that drains
// allocates nothing and so gives the collector no reason to run. It ends with ctx.
func giveMemoryBack(ctx context.Context, q *queue) {
	ticks := time.NewTicker(memoryPeriod)
	defer ticks.Stop()
	others := int64(0) // what was held beside the jobs when it was last cleaned up
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		jobs := int64(0)
		q.broker.Call(func(e *engine.Engine, _ int64) { jobs = e.Memory() })
		if heapHeld()-jobs > others+others/4+memoryWorth {
			debug.FreeOSMemory()
			others = heapHeld() - jobs
		}
	}
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
