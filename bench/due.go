package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	dueJobs = 1_000_000
	dueTube = "due"

	dueWhile = " of clients around that second"
	dueWrong = "jobs served out of order"

	dueTimeout  = 20 * time.Second // for a job; after that it is missing
	slowestPuts = 40_000           // each second, on any server; a plan needs some number
	planSlack   = 5 * time.Second  // for a machine that is busy with something else
)

// due lets very many delayed jobs of one tube come due within the same second.
func due(o *Options) Experiment {
	return Experiment{
		Name:  "due",
		Title: fmt.Sprintf("%s delayed jobs that come due within one second, beside %d clients of another tube", load.Count(o.jobs(dueJobs)), interactiveClients),
		goals: []goal{{p99 + dueWhile, Target{Of: value, Limit: 20e6}}, {dueWrong, Target{Of: value, Limit: 0}}}, // ns
		trial: running(func(ctx context.Context, t *trial) error {
			clients := t.clients()
			clients.Pace = pace
			if err := t.measure(ctx, " of clients before", clients); err != nil {
				return err
			}
			n := int(t.jobs(dueJobs))
			watch := time.Now().Add(planSlack + time.Duration(n)*(time.Second/slowestPuts))
			if err := t.putDelayed(ctx, n, watch.Add(t.Duration/4+time.Second)); err != nil {
				return err
			}
			early := time.Until(watch)
			if early < 0 {
				return fmt.Errorf("%d jobs could not be put before they came due", n)
			}
			if err := sleep(ctx, early); err != nil {
				return err
			}
			clients.Warmup, clients.Duration = -1, t.Duration+time.Second
			if err := t.measure(ctx, dueWhile, clients); err != nil {
				return err
			}
			return t.checkOrder(ctx, n)
		}),
	}
}

// putDelayed puts n jobs, the later ones with a shorter delay, so that all come
// due in the second before the end.
func (t *trial) putDelayed(ctx context.Context, n int, end time.Time) error {
	d, err := t.dial(ctx)
	if err != nil {
		return err
	}
	if err := d.ChooseTube(dueTube); err != nil {
		return err
	}
	body := make([]byte, 64)
	return d.Pipeline(n, func(out []byte, _ int) []byte {
		delay := max(time.Until(end)/time.Second, 0)
		return wire.AppendPut(out, 0, uint32(delay), jobTTR, body)
	}, nil, wire.Inserted)
}

// checkOrder reserves all the jobs and counts those that come after one with a larger
// id: of ready jobs of the same priority the one with the smallest id goes first.
func (t *trial) checkOrder(ctx context.Context, n int) error {
	d, err := t.dial(ctx)
	if err != nil {
		return err
	}
	if err := d.ChooseTube(dueTube); err != nil {
		return err
	}
	if err := awaitDue(ctx, d); err != nil {
		return err
	}
	last, wrong := uint64(0), 0
	err = d.Pipeline(n, func(out []byte, _ int) []byte {
		return wire.AppendReserveTimeout(out, uint32(dueTimeout/time.Second))
	}, func(r *wire.Reply) {
		if r.ID <= last {
			wrong++
		}
		last = max(last, r.ID)
	}, wire.Reserved)
	t.set(dueWrong, load.Number, float64(wrong))
	return err
}

// awaitDue waits until no job is delayed any more. What was put late, on a busy machine, comes due late.
func awaitDue(ctx context.Context, d *load.Dialog) error {
	for deadline := time.Now().Add(dueTimeout); ; {
		stats, err := d.Stats(wire.AppendStatsTubeCommand(nil, dueTube))
		if err != nil || stats["current-jobs-delayed"] == "0" {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s jobs are still delayed", stats["current-jobs-delayed"])
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}
