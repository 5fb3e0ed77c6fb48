package bench

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/internal/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// steadyInterval is the time from one command of a steady client to the next: together
// they are far from filling a server, as the clients of most queues are. Clients that send as fast
// as they can take all processors for themselves, and so wait for them with every other process.
const steadyInterval = time.Millisecond

// steady measures such clients for the duration of the options.
func (t *trial) steady(ctx context.Context) (load.Result, error) {
	begin := time.Now()
	return Steady(ctx, t.Addr, func() bool { return time.Since(begin) >= t.Duration })
}

// Steady measures clients that put, reserve and delete at a fixed rate, until over says that it is
// enough. Each looks after that when its job is deleted, so none is left.
func Steady(ctx context.Context, addr string, over func() bool) (load.Result, error) {
	var (
		mu       sync.Mutex
		recorder = load.NewRecorder(steadyInterval)
		commands int64
		clients  errgroup.Group
		begin    = time.Now()
	)
	for i := range interactiveClients {
		clients.Go(func() error {
			d, err := load.Dial(ctx, addr)
			if err != nil {
				return err
			}
			defer d.Close()
			if err := d.ChooseTube("interactive"); err != nil {
				return err
			}
			next := begin.Add(time.Duration(i) * steadyInterval / interactiveClients)
			timed := func(command []byte, want wire.ReplyKind) (*wire.Reply, error) {
				if err := sleep(ctx, time.Until(next)); err != nil {
					return nil, err
				}
				sent := time.Now()
				next = later(next.Add(steadyInterval), sent)
				r, err := d.Do(command, want)
				mu.Lock()
				defer mu.Unlock()
				recorder.Record(time.Since(sent))
				commands++
				return r, err
			}
			for { // once at least: clients that have done nothing have measured nothing
				if err := cycle(timed); err != nil || over() {
					return err
				}
			}
		})
	}
	if err := clients.Wait(); err != nil {
		return load.Result{}, err
	}
	return load.Result{Latency: recorder.Latency(), Throughput: float64(commands) / time.Since(begin).Seconds()}, nil
}

// cycle puts a job, reserves one and deletes that.
func cycle(do func(command []byte, want wire.ReplyKind) (*wire.Reply, error)) error {
	if _, err := do(wire.AppendPut(nil, 0, 0, jobTTR, make([]byte, 64)), wire.Inserted); err != nil {
		return err
	}
	r, err := do(wire.AppendReserve(nil), wire.Reserved)
	if err != nil {
		return err
	}
	_, err = do(wire.AppendDelete(nil, r.ID), wire.Deleted)
	return err
}

// later returns the later of two moments.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
