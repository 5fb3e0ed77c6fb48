package scale

import (
	"context"
	"fmt"
)

// memory puts a long queue and drains it.
var memory = experiment{
	name: "memory",
	title: func(o *Options) string {
		return fmt.Sprintf("%s ready jobs of 64 bytes, then none", count(o.jobs(memoryJobs)))
	},
	figures: []figure{
		{name: "RSS before", unit: Bytes},
		{name: "RSS with the jobs", unit: Bytes},
		{name: "RSS per job", unit: Bytes, target: ratioAtMost(0.7)},
		{name: "RSS after the drain", unit: Bytes},
		{name: "RSS when settled", unit: Bytes},
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

const (
	memoryJobs = 2_000_000
	memoryTube = "memory"
)
