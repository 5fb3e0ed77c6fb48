package daemon

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"
)

const (
	memoryPeriod = 5 * time.Second
	memoryWorth  = 32 << 20 // bytes; a smaller amount is not worth a collection
)

// freeOSMemory returns memory to the system when the queue has shrunk, until ctx is
// canceled. The runtime would take minutes to do that, because an idle server allocates
// nothing and so does not start the garbage collector.
func freeOSMemory(ctx context.Context, q *queue, srv *server.Server) {
	ticks := time.NewTicker(memoryPeriod)
	defer ticks.Stop()
	last := int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		switch now := garbage(q, srv); {
		case now > last+last/4+memoryWorth:
			runtime.GC() // buffers in a sync.Pool survive one collection
			debug.FreeOSMemory()
			last = garbage(q, srv)
		case now < last:
			last = now
		}
	}
}

// garbage returns the size of the heap without jobs and buffers of clients, in bytes: the
// garbage, and a rest that is almost constant.
func garbage(q *queue, srv *server.Server) (n int64) {
	q.broker.View(func(e *engine.Engine, _ int64) { n = -e.Memory() - srv.Counts().Buffers })
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return n + int64(m.HeapSys-m.HeapReleased)
}
