package bench

import (
	"context"
	"fmt"
)

const (
	memoryJobs = 2_000_000
	memoryTube = "memory"
)

// memory puts a long queue and drains it.
func memory(o *Options) Experiment {
	const perJob = "RSS per job"
	return Experiment{
		Name:  "memory",
		Title: fmt.Sprintf("%s ready jobs of 64 bytes, then none", count(o.jobs(memoryJobs))),
		goals: []goal{atMost(perJob, 0.7)},
		trial: running(func(ctx context.Context, t *trial) error {
			n := t.jobs(memoryJobs)
			t.setRSS("RSS before")
			if err := t.fill(ctx, memoryTube, n); err != nil {
				return err
			}
			rss := t.setRSS("RSS with the jobs")
			t.set(perJob, Bytes, rss/float64(n))
			if err := t.drain(ctx, memoryTube, n); err != nil {
				return err
			}
			t.setRSS("RSS after the drain")
			if err := sleep(ctx, t.Settle); err != nil {
				return err
			}
			t.setRSS("RSS when settled")
			return nil
		}),
	}
}
