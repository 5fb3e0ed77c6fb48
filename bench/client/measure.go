package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/worker"
)

// A result is what one contender did in one round.
type result struct {
	rate   float64 // jobs per second
	allocs float64 // per job
	cpu    float64 // microseconds of this process per job, user and system
	calls  float64 // reads and writes of this process per job; of a worker only
}

// A tally is what something has taken so far.
type tally struct {
	jobs       int
	took, used time.Duration
	allocs     uint64
}

// measure adds what f takes, which does something with n jobs.
func (t *tally) measure(n int, f func(n int) error) error {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	used := processorTime()
	began := time.Now()
	err := f(n)
	t.took += time.Since(began)
	t.used += processorTime() - used
	runtime.ReadMemStats(&after)
	t.allocs += after.Mallocs - before.Mallocs
	t.jobs += n
	return err
}

func (t *tally) result() result {
	n := float64(t.jobs)
	return result{rate: n / t.took.Seconds(), allocs: float64(t.allocs) / n, cpu: float64(t.used.Microseconds()) / n}
}

// processorTime returns what this process has used, user and system: a figure
// that says something on a busy machine too.
func processorTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u) // which does not fail for oneself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// slice is how many jobs a contender puts or reserves before it is the next one's
// turn: so few that a machine which is busy for a while is so for all of them.
const slice = 250

// round measures all contenders in turn on an empty server, and leaves it empty.
func round(addr string, jobs int) (puts, reserves []result, err error) {
	sessions := make([]session, 0, len(contenders))
	defer func() {
		for _, s := range sessions {
			err = errors.Join(err, s.Close())
		}
		err = errors.Join(err, empty(addr))
	}()
	for _, c := range contenders {
		s, err := c.dial(addr)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c.name, err)
		}
		sessions = append(sessions, s)
		if err := s.put(10); err != nil { // so that buffers have their size
			return nil, nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	if puts, err = inTurn(jobs, func(i int) func(int) error { return sessions[i].put }); err == nil {
		reserves, err = inTurn(jobs, func(i int) func(int) error { return sessions[i].reserve })
	}
	return puts, reserves, err
}

// inTurn measures what the contenders do with so many jobs each.
func inTurn(jobs int, do func(contender int) func(n int) error) ([]result, error) {
	tallies := make([]tally, len(contenders))
	runtime.GC()
	for left := jobs; left > 0; left -= slice {
		for _, i := range rand.Perm(len(contenders)) {
			n := min(slice, left) * contenders[i].times
			if err := tallies[i].measure(n, do(i)); err != nil {
				return nil, fmt.Errorf("%s: %w", contenders[i].name, err)
			}
		}
	}
	results := make([]result, len(tallies))
	for i := range tallies {
		results[i] = tallies[i].result()
	}
	return results, nil
}

// empty deletes all jobs of the tube default.
func empty(addr string) error {
	ctx := context.Background()
	c, err := client.Dial(ctx, addr, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		st, err := c.Stats(ctx)
		if err != nil || st.JobsReady+st.JobsReserved == 0 {
			return err
		}
		jobs, err := c.ReserveMany(ctx, 1000, time.Second)
		if errors.Is(err, client.ErrTimedOut) {
			continue // the hang-up of the last session is not through yet
		}
		if err != nil {
			return err
		}
		ids := make([]uint64, len(jobs))
		for i, job := range jobs {
			ids[i] = job.ID
		}
		if err := c.DeleteMany(ctx, ids); err != nil {
			return err
		}
	}
}

// A counted connection counts its system calls, and may hide from the client that the server knows batches.
type counted struct {
	net.Conn
	calls  *atomic.Int64
	single bool
}

func (c *counted) Read(p []byte) (int, error) {
	c.calls.Add(1)
	return c.Conn.Read(p)
}

func (c *counted) Write(p []byte) (int, error) {
	c.calls.Add(1)
	if c.single && bytes.Contains(p, []byte("caps\r\n")) {
		p = bytes.Replace(p, []byte("caps"), []byte("none"), 1)
	}
	return c.Conn.Write(p)
}

// work measures a worker with handlers that do nothing on n jobs that are there; single: it takes one at a time, on a connection
// for each handler, as with a server that knows no batches.
func work(addr string, handlers, n int, single bool) (result, error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s, err := dialOurs(ctx, batchSize)(addr)
	if err != nil {
		return result{}, err
	}
	defer s.Close()
	if err := s.put(n); err != nil {
		return result{}, err
	}
	var left, calls atomic.Int64
	left.Store(int64(n))
	w, err := worker.New(func(context.Context, *worker.Job) error { return nil }, &worker.Options{
		Servers:     []string{addr},
		Concurrency: handlers,
		Client: client.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &counted{nc, &calls, single}, err
		}},
		Hooks: worker.Hooks{Finish: func(_ context.Context, _ *worker.Job, o worker.Outcome) {
			if o.Action != worker.Deleted {
				err = fmt.Errorf("a job was %s: %w", o.Action, o.Err)
			}
			if left.Add(-1) == 0 {
				stop()
			}
		}},
	})
	if err != nil {
		return result{}, err
	}
	var t tally
	runtime.GC()
	err = t.measure(n, func(int) error { return errors.Join(w.Run(ctx), err) })
	r := t.result()
	r.calls = float64(calls.Load()) / float64(n)
	return r, err
}
