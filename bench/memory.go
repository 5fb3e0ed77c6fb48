package bench

import (
	"context"
	"fmt"

	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	memoryJobs = 2_000_000
	memoryTube = "memory"

	perJob        = "RSS per job"
	perDelayedJob = "RSS per delayed job"
	perBuriedJob  = "RSS per buried job"
)

// memory puts a long queue and drains it, and then puts as many jobs that are delayed, and
// as many that are buried, each on a process of its own.
func memory(o *Options) Experiment {
	return Experiment{
		Name:  "memory",
		Title: fmt.Sprintf("%s ready jobs of 64 bytes, then none; as many delayed and buried ones", load.Count(o.jobs(memoryJobs))),
		trial: func(ctx context.Context, t *trial) error {
			n := t.jobs(memoryJobs)
			if err := t.start(ctx, func(ctx context.Context) error { return t.memoryOfReady(ctx, n) }); err != nil {
				return err
			}
			for _, s := range []struct {
				figure string
				put    func(d *load.Dialog, n int) error
			}{{perDelayedJob, putLate}, {perBuriedJob, putAndBury}} {
				err := t.start(ctx, func(ctx context.Context) error {
					d, err := t.dial(ctx)
					if err != nil {
						return err
					}
					if err := s.put(d, int(n)); err != nil {
						return err
					}
					t.set(s.figure, load.Bytes, known(load.UsageOf(t.PID).RSS)/float64(n))
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
	t.setRSS("RSS before")
	if err := t.fill(ctx, memoryTube, n); err != nil {
		return err
	}
	rss := t.setRSS("RSS with the jobs")
	t.set(perJob, load.Bytes, rss/float64(n))
	if err := t.drain(ctx, memoryTube, n); err != nil {
		return err
	}
	t.setRSS("RSS after the drain")
	if err := sleep(ctx, t.Settle); err != nil {
		return err
	}
	t.setRSS("RSS when settled")
	return nil
}

// putLate puts n jobs with a delay that does not end.
func putLate(d *load.Dialog, n int) error {
	return d.Repeat(n, wire.AppendPut(nil, 0, jobTTR, jobTTR, make([]byte, 64)), wire.Inserted)
}

// putAndBury puts n jobs, reserves each, and buries it.
func putAndBury(d *load.Dialog, n int) error {
	put := wire.AppendPut(nil, 0, 0, jobTTR, make([]byte, 64))
	var ids []uint64
	for left := n; left > 0; left -= len(ids) {
		some := min(left, 100)
		if err := d.Repeat(some, put, wire.Inserted); err != nil {
			return err
		}
		ids = ids[:0]
		reserve := func(out []byte, _ int) []byte { return wire.AppendReserve(out) }
		if err := d.Pipeline(some, reserve, func(r *wire.Reply) { ids = append(ids, r.ID) }, wire.Reserved); err != nil {
			return err
		}
		bury := func(out []byte, i int) []byte { return wire.AppendBury(out, ids[i], 0) }
		if err := d.Pipeline(some, bury, nil, wire.Buried); err != nil {
			return err
		}
	}
	return nil
}
