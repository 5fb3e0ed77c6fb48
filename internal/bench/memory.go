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
	return Experiment{
		Name:  "memory",
		Title: fmt.Sprintf("%s ready jobs of 64 bytes, then none", count(o.jobs(memoryJobs))),
		figures: []Figure{
			{Name: "RSS before", Unit: Bytes},
			{Name: "RSS with the jobs", Unit: Bytes},
			{Name: "RSS per job", Unit: Bytes, Targets: []Target{{Of: toA, Limit: 0.7}}},
			{Name: "RSS after the drain", Unit: Bytes},
			{Name: "RSS when settled", Unit: Bytes},
		},
		trial: func(ctx context.Context, t *trial) error {
			n := t.jobs(memoryJobs)
			t.setRSS("RSS before")
			if err := t.fill(ctx, memoryTube, n); err != nil {
				return err
			}
			if rss := t.setRSS("RSS with the jobs"); rss > 0 {
				t.set("RSS per job", rss/float64(n))
			}
			if err := t.drain(ctx, memoryTube, n); err != nil {
				return err
			}
			t.setRSS("RSS after the drain")
			if err := sleep(ctx, t.Settle); err != nil {
				return err
			}
			t.setRSS("RSS when settled")
			return nil
		},
	}
}
