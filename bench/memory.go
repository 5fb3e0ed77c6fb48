package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/client"
)

const (
	memoryJobs = 2_000_000
	memoryTube = "memory"
)

// memory puts a long queue and drains it. Then it puts the same number of delayed jobs,
// and of buried jobs, each in a new process.
func memory(o *Options) Experiment {
	return Experiment{
		Name: fmt.Sprintf("Footprint/%d jobs", o.jobs(memoryJobs)),
		trial: func(ctx context.Context, t *trial) error {
			n := t.jobs(memoryJobs)
			if err := t.start(ctx, func(ctx context.Context) error { return t.memoryOfReady(ctx, n) }); err != nil {
				return err
			}
			for _, aside := range []struct {
				unit string
				job  client.NewJob
			}{{"bytes/delayed-job", client.NewJob{Delay: jobTTR}}, {"bytes/buried-job", client.NewJob{}}} {
				err := t.start(ctx, func(ctx context.Context) error {
					if err := t.putAside(ctx, aside.job, int(n)); err != nil {
						return err
					}
					t.set(float64(load.UsageOf(t.PID).RSS)/float64(n), aside.unit)
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (t *trial) memoryOfReady(ctx context.Context, n int64) error {
	t.setRSS("RSS-before-bytes")
	if err := t.fill(ctx, memoryTube, n); err != nil {
		return err
	}
	rss := t.setRSS("RSS-with-jobs-bytes")
	t.set(rss/float64(n), "bytes/job")
	if err := t.drain(ctx, memoryTube, n); err != nil {
		return err
	}
	t.setRSS("RSS-drained-bytes")
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(t.Settle):
	}
	t.setRSS("RSS-settled-bytes")
	return nil
}

// putAside puts n jobs on several connections. Without a delay, it reserves and buries
// them.
func (t *trial) putAside(ctx context.Context, job client.NewJob, n int) error {
	const connections, batch = 8, 100
	job.Body, job.TTR = make([]byte, 64), jobTTR
	g, ctx := errgroup.WithContext(ctx)
	for k := range connections {
		g.Go(func() error {
			c, err := client.Dial(ctx, t.Addr, nil)
			if err != nil {
				return err
			}
			defer c.Close()
			for left := (n + k) / connections; left > 0 && err == nil; left -= batch {
				jobs := slices.Repeat([]client.NewJob{job}, min(left, batch))
				if _, err = c.PutMany(ctx, jobs); err == nil && job.Delay == 0 {
					err = bury(ctx, c, len(jobs))
				}
			}
			return err
		})
	}
	return g.Wait()
}

func bury(ctx context.Context, c *client.Conn, n int) error {
	for n > 0 {
		jobs, err := c.ReserveMany(ctx, n, 0)
		if err != nil {
			return err
		}
		for _, job := range jobs {
			if err := job.Bury(ctx); err != nil {
				return err
			}
		}
		n -= len(jobs)
	}
	return nil
}
