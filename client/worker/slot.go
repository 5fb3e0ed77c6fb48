package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/client"
)

// Pauses after a reserve has failed.
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// A slot works on one job at a time. Its goroutine is the only one that takes and
// finishes jobs; another touches the job while the handler runs.
type slot struct {
	*Worker
	seat *seat
	jobs context.Context // ends when handlers must stop
	busy atomic.Bool
}

// run works until ctx ends.
func (s *slot) run(ctx context.Context) {
	defer s.seat.close()
	var pause time.Duration
	for ctx.Err() == nil {
		job, err := s.seat.reserve(ctx)
		for err == nil {
			pause = 0
			job, err = s.work(ctx, job)
		}
		if err == errFinished || ctx.Err() != nil {
			continue
		}
		s.observer.noJobs(err)
		pause = min(max(2*pause, firstPause), maxPause)
		sleep(ctx, pause/2+rand.N(pause/2)) // #nosec G404 -- spreads retries
	}
}

// errFinished says that a job is finished and none taken.
var errFinished = errors.New("finished")

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// work has a job handled and settles what becomes of it. It returns the next job,
// if it has taken one with the same round trip.
func (s *slot) work(ctx context.Context, reserved *client.Job) (next *client.Job, err error) {
	s.busy.Store(true)
	defer s.busy.Store(false)
	job := newJob(reserved, s.opt.Tubes)
	jctx := s.jobs
	if s.opt.Hooks.Start != nil {
		jctx = s.opt.Hooks.Start(jctx, job)
	}
	if s.opt.MaxTries > 0 && (job.Tries > s.opt.MaxTries || job.Tries == 0 && s.opt.CountFirst) {
		st, err := job.Stats(jctx)
		if err == nil && s.opt.spent(crashed(st), st.Kicks) {
			s.observer.finished(jctx, job, s.settle(job, st, Outcome{Action: Buried, Err: errTried}))
			return nil, errFinished
		}
	}
	began := time.Now()
	herr := s.handleTouched(jctx, job)
	took := time.Since(began)
	if herr == errFinished {
		return nil, herr
	}
	if herr != nil {
		o := s.fail(job, herr)
		o.Took = took
		s.observer.finished(jctx, job, o)
		return nil, errFinished
	}
	deleted := func(err error) {
		job.settled.Store(true) // before the hook, which must not wait for the next job
		o := Outcome{Action: Deleted, Took: took}
		if err != nil {
			o.Action, o.Err = Lost, err
		}
		s.observer.finished(jctx, job, o)
	}
	if ctx.Err() != nil {
		deleted(reserved.Delete(context.WithoutCancel(ctx)))
		s.seat.finished()
		return nil, errFinished
	}
	return s.seat.next(ctx, reserved, deleted)
}

// errTried is the reason for burying a job whose earlier tries all ended without a
// result.
var errTried = errors.New("worker: the job was tried too often without a result")

// crashed returns the number of earlier tries that ended without a release or a bury: the
// worker died, or the time to run was over.
func crashed(st *client.JobStats) uint64 {
	ended := 1 + st.Releases + st.Buries // this try included
	return max(st.Reserves, ended) - ended
}

// handleTouched runs the handler while a heartbeat touches the job. It returns
// errFinished if the job was settled before the handler returned.
func (s *slot) handleTouched(ctx context.Context, job *Job) error {
	hctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := s.opt.Timeout
	if s.opt.TimeoutOf != nil {
		timeout = cmp.Or(s.opt.TimeoutOf(job), timeout)
	}
	began := time.Now()
	k := heartbeat{job: job, cancel: cancel, giveUp: func() {
		job.settled.Store(true)
		o := s.fail(job, errStuck)
		o.Took = time.Since(began)
		s.observer.finished(ctx, job, o)
	}}
	k.start(hctx, timeout)
	err := s.call(hctx, job)
	if k.stop() {
		return errFinished
	}
	if err != nil && context.Cause(hctx) == ErrTimeout {
		err = fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return err
}

// errStuck is the reason for giving a job up whose handler ignores its timeout.
var errStuck = fmt.Errorf("%w: it does not return, and no other job runs in its place", ErrTimeout)

// call runs the handler, and makes an error of a panic.
func (s *slot) call(ctx context.Context, job *Job) (err error) {
	defer func() {
		if value := recover(); value != nil {
			s.observer.panicked(ctx, job, value, debug.Stack())
			err = fmt.Errorf("worker: panic: %v", value)
		}
	}()
	return s.handle(ctx, job)
}

// fail settles what becomes of a job whose handler has returned an error.
func (s *slot) fail(job *Job, herr error) Outcome {
	st, err := job.job.Stats(context.WithoutCancel(s.jobs))
	if err != nil {
		s.giveUp(job, err) // with its priority, which is not known
		return Outcome{Action: Lost, Err: errors.Join(herr, err)}
	}
	o := Outcome{Action: Released, Err: herr}
	var v *verdict
	switch {
	case errors.As(herr, &v):
		o.Action, o.Delay = v.action, max(v.delay, 0)
	case s.jobs.Err() != nil: // told to stop: that is no fault of the job
	case s.opt.spent(st.Reserves, st.Kicks):
		o.Action = Buried
	default:
		o.Delay = max(s.opt.Backoff(s.opt.nth(st.Reserves)), 0)
	}
	return s.settle(job, st, o)
}

// settle buries or releases a job, with the priority that it has. It gives a job up for
// which that fails, as when the server's disk is full: it must not stay with this
// connection.
func (s *slot) settle(job *Job, st *client.JobStats, o Outcome) Outcome {
	o.Tries = int(st.Reserves)
	ctx := context.WithoutCancel(s.jobs)
	job.job.Facts = cmp.Or(job.job.Facts, new(client.JobFacts))
	job.job.Facts.Priority = st.Priority // as it is now
	var err error
	if o.Action == Buried {
		err = job.job.Bury(ctx)
	} else {
		err = job.job.Release(ctx, o.Delay)
	}
	if err == nil {
		s.seat.finished()
		return o
	}
	o.Action, o.Delay, o.Err = Lost, 0, errors.Join(o.Err, err)
	s.giveUp(job, err)
	return o
}

// giveUp gives a job up after an error, unless that says that it is lost already.
func (s *slot) giveUp(job *Job, err error) {
	if errors.Is(err, client.ErrNotFound) {
		s.seat.finished()
		return
	}
	s.seat.giveUp()
}
