package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/beanpole-mq/beanpole/client"
)

// A slot handles one job at a time. Its goroutine calls the handler and settles the job;
// a heartbeat touches the job while the handler runs.
type slot struct {
	*fetcher
	jobs    context.Context // ends when handlers must stop
	next    chan task       // the next job; closed if there are no more jobs
	deleted chan error      // the result of the delete that the last report asked for
}

// run runs until the fetcher has no more jobs.
func (s *slot) run() {
	r := report{slot: s, idle: true}
	settled := func(error) {}
	for s.send(r) {
		if r.delete != 0 {
			select {
			case err := <-s.deleted:
				settled(err)
			case <-s.kill.Done():
				return
			}
		}
		select {
		case t, ok := <-s.next:
			if !ok {
				return
			}
			r, settled = s.work(t)
		case <-s.kill.Done():
			return
		}
	}
}

// work calls the handler for a job and settles the job, unless it must be deleted. In
// that case, it returns the function to call with the result of the delete.
func (s *slot) work(t task) (r report, deleted func(error)) {
	job := newJob(t.Job, s.opt.Tubes)
	ctx := s.jobs
	r = report{slot: s, line: t.line, idle: true}
	if s.opt.MaxTries > 0 && (job.Tries > s.opt.MaxTries || job.Tries == 0 && s.opt.CheckTries) {
		st, err := job.Stats(ctx)
		if err == nil && s.opt.exhausted(crashed(st), st.Kicks) {
			var o Outcome
			o, r.retire = s.settle(job, st, Outcome{Action: Buried, Err: errTried})
			s.finished(ctx, job, o)
			return r, nil
		}
	}
	began := time.Now()
	stuck := func() {
		job.settled.Store(true)
		o, retire := s.fail(job, errStuck)
		o.Took = time.Since(began)
		s.finished(ctx, job, o)
		s.send(report{slot: s, line: t.line, retire: retire})
	}
	gone, err := s.handleTouched(ctx, job, stuck)
	o := Outcome{Action: Deleted, Took: time.Since(began)}
	switch {
	case gone:
		r.line = nil
	case err != nil:
		took := o.Took
		o, r.retire = s.fail(job, err)
		o.Took = took
		s.finished(ctx, job, o)
	default:
		r.delete = job.ID
	}
	return r, func(err error) {
		job.settled.Store(true) // set before the hook runs, because the connection must not wait for the next job earlier
		if err != nil {
			o.Action, o.Err = Lost, err
		}
		s.finished(ctx, job, o)
	}
}

// errTried is the reason for burying a job whose earlier tries all ended without a
// result.
var errTried = errors.New("worker: too many tries without a result")

// crashed returns the number of earlier tries that ended without a release or a bury,
// because the worker died or the time to run expired.
func crashed(st *client.JobStats) uint64 {
	ended := 1 + st.Releases + st.Buries // including this try
	return max(st.Reserves, ended) - ended
}

// handleTouched runs the handler while a heartbeat touches the job. gone reports whether
// the heartbeat has called stuck.
func (s *slot) handleTouched(ctx context.Context, job *Job, stuck func()) (gone bool, err error) {
	hctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := s.opt.Timeout
	if s.opt.TimeoutOf != nil {
		timeout = cmp.Or(s.opt.TimeoutOf(job), timeout)
	}
	k := heartbeat{job: job, cancel: cancel, discard: stuck}
	k.start(hctx, timeout)
	err = s.call(hctx, job)
	gone = k.stop()
	if err != nil && context.Cause(hctx) == ErrTimeout {
		err = fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return gone, err
}

// errStuck is the reason for giving up a job whose handler ignores its timeout.
var errStuck = fmt.Errorf("%w: it does not return, and no other job runs in its place", ErrTimeout)

// call runs the handler and converts a panic into an error.
func (s *slot) call(ctx context.Context, job *Job) (err error) {
	defer func() {
		if value := recover(); value != nil {
			s.opt.Logger.ErrorContext(ctx, "a handler has panicked", "job", job.ID, "server", job.Server, "panic", value, "stack", string(debug.Stack()))
			err = fmt.Errorf("worker: panic: %v", value)
		}
	}()
	return s.handle(ctx, job)
}

// fail settles a job whose handler has returned an error. reserved reports whether the
// job is still reserved.
func (s *slot) fail(job *Job, herr error) (o Outcome, reserved bool) {
	st, err := job.job.Stats(context.WithoutCancel(s.jobs))
	if err != nil { // without its priority, the job cannot be released
		return Outcome{Action: Lost, Err: errors.Join(herr, err)}, !errors.Is(err, client.ErrNotFound)
	}
	o = Outcome{Action: Released, Err: herr}
	var v *outcomeError
	switch {
	case errors.As(herr, &v):
		o.Action, o.Delay = v.action, max(v.delay, 0)
	case s.jobs.Err() != nil: // the worker is stopping; the job did not fail
	case s.opt.exhausted(st.Reserves, st.Kicks):
		o.Action = Buried
	default:
		o.Delay = max(s.opt.Backoff(s.opt.tryNumber(st.Reserves)), 0)
	}
	return s.settle(job, st, o)
}

// reasonOf returns the reason that an error gives. It is empty for Bury and Retry without
// an error.
func reasonOf(err error) string {
	if v, ok := errors.AsType[*outcomeError](err); ok && v.why == nil {
		return ""
	}
	if r, ok := errors.AsType[interface {
		error
		Reason() string
	}](err); ok {
		return r.Reason()
	}
	return err.Error()
}

// settle buries or releases a job with its priority. reserved reports whether this
// failed, for example because the server's disk is full, so that the job is still
// reserved. In that case, the connection must be closed, so that the server gives the job
// to another worker.
func (s *slot) settle(job *Job, st *client.JobStats, o Outcome) (_ Outcome, reserved bool) {
	o.Tries = int(st.Reserves)
	ctx := context.WithoutCancel(s.jobs)
	job.job.Facts = cmp.Or(job.job.Facts, new(client.JobStats))
	job.job.Facts.Priority = st.Priority // the current priority
	job.job.Reason = reasonOf(o.Err)
	var err error
	if o.Action == Buried {
		err = job.job.Bury(ctx)
	} else {
		err = job.job.Release(ctx, o.Delay)
	}
	if err == nil {
		return o, false
	}
	o.Action, o.Delay, o.Err = Lost, 0, errors.Join(o.Err, err)
	return o, !errors.Is(err, client.ErrNotFound)
}
