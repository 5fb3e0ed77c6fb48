package scale

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/internal/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// due lets very many delayed jobs of one tube come due within the same second.
var due = experiment{
	name: "due",
	title: func(o *Options) string {
		return fmt.Sprintf("%s delayed jobs that come due within one second, beside %d clients of another tube", count(o.jobs(dueJobs)), interactiveClients)
	},
	figures: dueFigures(),
	trial: func(ctx context.Context, t *trial) error {
		o := t.clients()
		o.Pace = duePace
		r, err := load.Run(ctx, o)
		if err != nil {
			return err
		}
		t.setLatency(dueBefore, r.Latency)

		s := newSchedule(t.jobs(dueJobs), time.Now(), t.Duration)
		if err := t.putDelayed(ctx, s); err != nil {
			return err
		}
		if err := t.watchDue(ctx, s); err != nil {
			return err
		}
		wrong, err := s.misplaced()
		t.set(dueWrong, float64(wrong))
		return err
	},
}

const (
	dueJobs = 1_000_000
	dueTube = "due"

	dueBefore    = "clients before"
	dueMeanwhile = "clients around that second"
	dueLate      = "last job ready after its time"
	dueWrong     = "jobs served out of order"

	dueBatch = 100              // commands sent at a time
	dueWait  = 20 * time.Second // for a job; after that it is missing
	duePoll  = 5 * time.Millisecond

	// duePace makes a standstill of the server weigh as much in the percentiles as
	// it lasts: it is about what a command takes without one.
	duePace = 100 * time.Microsecond

	jobTTR = 3600 // s; no job comes back by itself
)

func dueFigures() []figure {
	all := latencyFigures(dueBefore)
	for _, f := range latencyFigures(dueMeanwhile) {
		if f.name == "p99 of "+dueMeanwhile {
			f.target = atMost(20e6)
		}
		all = append(all, f)
	}
	return append(all,
		figure{name: dueLate, unit: Nanoseconds},
		figure{name: dueWrong, unit: Number, target: atMost(0)})
}

// putDelayed puts the jobs of the schedule, from one connection.
func (t *trial) putDelayed(ctx context.Context, s *schedule) error {
	d, err := t.Dial(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.Do(wire.AppendUse(nil, dueTube), wire.Using); err != nil {
		return err
	}
	var out []byte
	for len(s.jobs) < s.total {
		sent := time.Now()
		delay, err := s.delay(sent)
		if err != nil {
			return err
		}
		n := min(dueBatch, s.total-len(s.jobs))
		out = out[:0]
		for i := range n {
			out = wire.AppendPut(out, 0, delay, jobTTR, s.body(len(s.jobs)+i))
		}
		if err := d.Send(out); err != nil {
			return err
		}
		first := len(s.jobs)
		for range n {
			r, err := d.Receive(wire.Inserted)
			if err != nil {
				return err
			}
			s.jobs = append(s.jobs, scheduled{id: r.ID, delay: delay})
		}
		s.bound(first, sent, time.Now())
	}
	return nil
}

// watchDue takes the jobs, and meanwhile looks after the clients and at the
// number of jobs that are still delayed.
func (t *trial) watchDue(ctx context.Context, s *schedule) error {
	if err := sleep(ctx, time.Until(s.watchFrom)); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return t.take(ctx, s) })
	var late time.Duration
	g.Go(func() (err error) {
		late, err = t.awaitReady(ctx, s)
		return err
	})
	var r load.Result
	g.Go(func() (err error) {
		o := t.clients()
		o.Pace = duePace
		o.Warmup, o.Duration = -1, s.watchUntil.Sub(s.watchFrom)
		r, err = load.Run(ctx, o)
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	t.setLatency(dueMeanwhile, r.Latency)
	t.setTime(dueLate, late)
	return nil
}

// take receives and deletes all jobs in the order in which the server serves
// them: like any worker while the clients are watched, then a batch at a time.
func (t *trial) take(ctx context.Context, s *schedule) error {
	d, err := t.Dial(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.Do(wire.AppendWatch(nil, dueTube), wire.Watching); err != nil {
		return err
	}
	var out []byte
	for len(s.served) < s.total {
		n := 1
		if time.Now().After(s.watchUntil) {
			n = min(dueBatch, s.total-len(s.served))
		}
		out = out[:0]
		for range n {
			out = wire.AppendReserveTimeout(out, uint32(dueWait/time.Second))
		}
		if err := d.Send(out); err != nil {
			return err
		}
		out = out[:0]
		for range n {
			r, err := d.Receive(wire.Reserved)
			if err != nil {
				return fmt.Errorf("after %d of %d jobs: %w", len(s.served), s.total, err)
			}
			if err := s.serve(r.ID, r.Body, time.Now()); err != nil {
				return err
			}
			out = wire.AppendDelete(out, r.ID)
		}
		if err := d.Send(out); err != nil {
			return err
		}
		for range n {
			if _, err := d.Receive(wire.Deleted); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitReady returns how long after the last job's time no job was delayed any
// more.
func (t *trial) awaitReady(ctx context.Context, s *schedule) (late time.Duration, err error) {
	d, err := t.Dial(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	if _, err := d.Do(wire.AppendUse(nil, dueTube), wire.Using); err != nil { // so that the tube stays
		return 0, err
	}
	last := s.lastDue()
	if err := sleep(ctx, time.Until(last)); err != nil {
		return 0, err
	}
	for command := wire.AppendStatsTubeCommand(nil, dueTube); ; {
		r, err := d.Do(command, wire.OK)
		if err != nil {
			return 0, err
		}
		stats, err := wire.ParseDict(r.Body)
		switch {
		case err != nil:
			return 0, err
		case stats["current-jobs-delayed"] == "0":
			return time.Since(last), nil
		case time.Since(last) > dueWait:
			return 0, fmt.Errorf("%s jobs are still delayed, %v after their time", stats["current-jobs-delayed"], dueWait)
		}
		if err := sleep(ctx, duePoll); err != nil {
			return 0, err
		}
	}
}
