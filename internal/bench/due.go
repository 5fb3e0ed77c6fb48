package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/internal/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	dueJobs = 1_000_000
	dueTube = "due"

	dueBefore    = " of clients before"
	dueMeanwhile = " of clients around that second"
	dueLate      = "last job ready after its time"
	dueWrong     = "jobs served out of order"

	dueTimeout  = 20 * time.Second // for a job; after that it is missing
	duePoll     = 5 * time.Millisecond
	slowestPuts = 40_000 // each second, on any server; a plan needs some number
	planSlack   = time.Second

	// duePace makes a standstill of the server weigh as much in the percentiles as
	// it lasts: it is about what a command takes without one. A closed loop would
	// count it once for each client.
	duePace = 100 * time.Microsecond
)

// due lets very many delayed jobs of one tube come due within the same second.
func due(o *Options) Experiment {
	e := Experiment{
		Name:    "due",
		Title:   fmt.Sprintf("%s delayed jobs that come due within one second, beside %d clients of another tube", count(o.jobs(dueJobs)), interactiveClients),
		figures: append(latencyFigures(dueBefore), latencyFigures(dueMeanwhile)...),
		trial:   dueTrial,
	}
	e.addTargets([]goal{{p99 + dueMeanwhile, Target{Of: value, Limit: 20e6}}})
	e.figures = append(e.figures,
		Figure{Name: dueLate, Unit: Nanoseconds},
		Figure{Name: dueWrong, Unit: Number, Targets: []Target{{Of: value, Limit: 0}}})
	return e
}

func dueTrial(ctx context.Context, t *trial) error {
	o := t.clients()
	o.Pace = duePace
	r, err := load.Run(ctx, o)
	if err != nil {
		return err
	}
	t.setLatency(dueBefore, r.Latency)

	n := int(t.jobs(dueJobs))
	watch := time.Now().Add(planSlack + time.Duration(n)*(time.Second/slowestPuts))
	last, err := t.putDelayed(ctx, n, watch, watch.Add(t.Duration/4+time.Second))
	if err != nil {
		return err
	}
	if err := sleep(ctx, time.Until(watch)); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return t.awaitReady(gctx, last) })
	g.Go(func() error {
		o.Warmup, o.Duration = -1, t.Duration+time.Second
		r, err := load.Run(gctx, o)
		t.setLatency(dueMeanwhile, r.Latency)
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	return t.checkOrder(ctx, n)
}

// putDelayed puts n jobs, the later ones with a shorter delay, so that all come
// due in the second before the time given. It returns when the last of them does,
// and fails if the puts are not done by the time that the clients are watched from.
func (t *trial) putDelayed(ctx context.Context, n int, watch, end time.Time) (last time.Time, err error) {
	d, err := t.Dial(ctx)
	if err != nil {
		return last, err
	}
	defer d.Close()
	if _, err := d.Do(wire.AppendUse(nil, dueTube), wire.Using); err != nil {
		return last, err
	}
	body := make([]byte, 64)
	return last, batches(n, func(i, size int) error {
		sent := time.Now()
		if sent.After(watch) {
			return fmt.Errorf("only %d of %d jobs were put before they came due", i, n)
		}
		delay := end.Sub(sent) / time.Second
		if at := sent.Add(delay * time.Second); at.After(last) {
			last = at
		}
		var out []byte
		for range size {
			out = wire.AppendPut(out, 0, uint32(delay), jobTTR, body)
		}
		return d.Exchange(out, size, nil, wire.Inserted)
	})
}

// awaitReady waits until no job is delayed any more, and sets how long after the
// last job's time that was.
func (t *trial) awaitReady(ctx context.Context, last time.Time) error {
	d, err := t.Dial(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := sleep(ctx, time.Until(last)); err != nil {
		return err
	}
	for command := wire.AppendStatsTubeCommand(nil, dueTube); ; {
		r, err := d.Do(command, wire.OK)
		if err != nil {
			return err
		}
		stats, err := wire.ParseDict(r.Body)
		switch {
		case err != nil:
			return err
		case stats["current-jobs-delayed"] == "0":
			t.setTime(dueLate, time.Since(last))
			return nil
		case time.Since(last) > dueTimeout:
			return fmt.Errorf("%s jobs are still delayed, %v after their time", stats["current-jobs-delayed"], dueTimeout)
		}
		if err := sleep(ctx, duePoll); err != nil {
			return err
		}
	}
}

// checkOrder takes all the jobs and counts those that come after one with a larger
// id: of ready jobs of the same priority the one with the smallest id goes first.
func (t *trial) checkOrder(ctx context.Context, n int) error {
	d, err := t.Dial(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.Do(wire.AppendWatch(nil, dueTube), wire.Watching); err != nil {
		return err
	}
	last, wrong := uint64(0), 0
	err = batches(n, func(_, size int) error {
		var reserves, deletes []byte
		for range size {
			reserves = wire.AppendReserveTimeout(reserves, uint32(dueTimeout/time.Second))
		}
		err := d.Exchange(reserves, size, func(r *wire.Reply) {
			if r.ID <= last {
				wrong++
			}
			last = max(last, r.ID)
			deletes = wire.AppendDelete(deletes, r.ID)
		}, wire.Reserved)
		if err != nil {
			return err
		}
		return d.Exchange(deletes, size, nil, wire.Deleted)
	})
	t.set(dueWrong, float64(wrong))
	return err
}
