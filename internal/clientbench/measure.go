package main

import (
	"context"
	"errors"
	"fmt"
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
}

// measure times f, which does something with n jobs.
func measure(n int, f func(n int) error) (result, error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	used := processorTime()
	began := time.Now()
	err := f(n)
	took := time.Since(began)
	used = processorTime() - used
	runtime.ReadMemStats(&after)
	return result{
		rate:   float64(n) / took.Seconds(),
		allocs: float64(after.Mallocs-before.Mallocs) / float64(n),
		cpu:    float64(used.Microseconds()) / float64(n),
	}, err
}

// processorTime returns what this process has used, user and system: a figure
// that says something on a busy machine too.
func processorTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u) // which does not fail for oneself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// putAndReserve measures a contender on an empty server, and leaves it empty.
func putAndReserve(addr string, c contender, n int) (put, reserve result, err error) {
	s, err := c.dial(addr)
	if err != nil {
		return put, reserve, err
	}
	if err = s.put(10); err == nil { // so that buffers have their size
		put, err = measure(n, s.put)
	}
	if err == nil {
		reserve, err = measure(n, s.reserve)
	}
	return put, reserve, errors.Join(err, s.Close(), empty(addr))
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

// work measures a worker with handlers that do nothing on n jobs that are there.
func work(addr string, handlers, n int) (result, error) {
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
	left := atomic.Int64{}
	left.Store(int64(n))
	w, err := worker.New(func(context.Context, *worker.Job) error { return nil }, &worker.Options{
		Servers:     []string{addr},
		Concurrency: handlers,
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
	return measure(n, func(int) error { return errors.Join(w.Run(ctx), err) })
}
