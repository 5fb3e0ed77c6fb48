package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/client"
)

// A Handler processes a job. If it returns nil, the job is deleted. Otherwise, the job is
// released for another try, or buried if it has used all its tries. Errors made by [Bury]
// and [Retry] select the action.
//
// The job is touched while the handler runs, so its time to run only limits how long a
// dead worker can hold it. ctx ends with the cause [ErrTimeout] after [Options].Timeout,
// [ErrLost] when the worker loses the job, or [ErrStopped] when the worker must stop. If
// the handler returns an error after ErrStopped, the job is released at once.
type Handler func(ctx context.Context, job *Job) error

// A Job is a reserved job, for a handler.
type Job struct {
	ID     uint64
	Body   []byte
	Server string // the address, as in Options.Servers

	// beanpole sends these values with the body. With other servers, they are zero,
	// except for Tube if Options.Tubes has one tube; use Stats.
	Tube     string
	Tries    int           // number of reserves, including this one
	Age      time.Duration // time since the put, in whole seconds
	Priority uint32

	job     *client.Job
	settled atomic.Bool // the job is deleted or given up; its connection can wait for the next job
}

func newJob(reserved *client.Job, tubes []string) *Job {
	job := &Job{ID: reserved.ID, Body: reserved.Body, Server: reserved.Server(), job: reserved}
	switch f := reserved.Facts; {
	case f != nil:
		job.Tube, job.Tries, job.Age, job.Priority = f.Tube, int(f.Reserves), f.Age, f.Priority
	case len(tubes) == 1:
		job.Tube = tubes[0]
	}
	return job
}

// Touch restarts the job's time to run. The worker does so automatically. A handler needs
// Touch only to check whether it still holds the job; otherwise the error is
// [client.ErrNotFound]. The end of ctx does not interrupt the command, because that would
// close the connection, which can hold other jobs; client.Options.Timeout limits it.
func (j *Job) Touch(ctx context.Context) error {
	if j.settled.Load() {
		return errSettled
	}
	return j.job.Touch(context.WithoutCancel(ctx))
}

// Stats returns the statistics of the job, such as its tube and its tries. For a job that
// the worker has deleted or given up, the error is [client.ErrNotFound]. As with Touch,
// the end of ctx does not interrupt the command.
func (j *Job) Stats(ctx context.Context) (*client.JobStats, error) {
	if j.settled.Load() {
		return nil, errSettled
	}
	return j.job.Stats(context.WithoutCancel(ctx))
}

var errSettled = fmt.Errorf("worker: the job is no longer reserved: %w", client.ErrNotFound)

// The causes with which a handler's context ends.
var (
	ErrTimeout = errors.New("worker: the handler took longer than its timeout")
	ErrLost    = errors.New("worker: the job is lost to this worker: its time to run was over, or its connection was lost")
	ErrStopped = errors.New("worker: stopped")
)

// ErrStillRunning is returned by [Worker.Run] if handlers continue after their contexts
// have ended. The connections of their jobs are closed, so that the server gives the jobs
// to other workers.
var ErrStillRunning = errors.New("worker: handlers are still running")

// An outcomeError is an error of a handler that selects the action.
type outcomeError struct {
	action Action
	why    error // nil if the handler gives no reason
	delay  time.Duration
}

func (v *outcomeError) Error() string {
	if v.why == nil {
		return fmt.Sprintf("worker: the handler wants the job %s", v.action)
	}
	return v.why.Error()
}

func (v *outcomeError) Unwrap() error { return v.why }

// Bury returns an error that makes the worker bury the job at once, because no try can
// succeed. err is the reason, and can be nil.
func Bury(err error) error { return &outcomeError{action: Buried, why: err} }

// Retry returns an error that makes the worker release the job with this delay,
// regardless of Options.MaxTries and Options.Backoff. err is the reason, and can be nil.
func Retry(err error, delay time.Duration) error {
	return &outcomeError{action: Released, why: err, delay: delay}
}

// A Worker reserves jobs and calls a handler for each.
type Worker struct {
	handle Handler
	opt    Options

	mu   sync.Mutex
	down map[string]bool // servers without a connection
}

// New returns a worker. opt can be nil.
func New(handle Handler, opt *Options) (*Worker, error) {
	o, err := opt.filled()
	if err != nil {
		return nil, err
	}
	if handle == nil {
		return nil, errors.New("worker: no handler")
	}
	w := &Worker{handle: handle, opt: o, down: make(map[string]bool)}
	connState := o.Client.ConnState
	w.opt.Client.Facts = true
	w.opt.Client.ConnState = func(addr string, err error) {
		w.connection(addr, err)
		if connState != nil {
			connState(addr, err)
		}
	}
	// Check the addresses and the token. This does not connect.
	servers, err := client.NewServers(o.Servers, &w.opt.Client)
	if err != nil {
		return nil, err
	}
	servers.Close()
	for _, wrap := range slices.Backward(o.Use) {
		w.handle = wrap(w.handle)
	}
	return w, nil
}

// killGrace is the time that a handler has to return after its context has ended.
const killGrace = 5 * time.Second

// Run runs until ctx ends. Then it reserves no more jobs, lets running handlers finish,
// and returns nil; see Options.StopTimeout. While a server is unreachable, Run keeps
// trying, and reports the problem to Hooks and Logger.
func (w *Worker) Run(ctx context.Context) error {
	jobs, cancelJobs := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancelJobs(nil)
	killed, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	var wg sync.WaitGroup
	for _, addr := range w.opt.Servers {
		f := &fetcher{
			Worker: w, addr: addr, ctx: ctx, kill: killed, slots: w.opt.Concurrency,
			reports: make(chan report, w.opt.Concurrency), reserved: make(chan reserved, 1),
		}
		wg.Go(f.run)
		for range w.opt.Concurrency {
			s := &slot{fetcher: f, jobs: jobs, next: make(chan task, 1), deleted: make(chan error, 1)}
			wg.Go(s.run)
		}
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	if w.opt.StopTimeout > 0 && !ended(done, w.opt.StopTimeout) {
		cancelJobs(ErrStopped)
		if !ended(done, killGrace) {
			kill()
			return ErrStillRunning
		}
	}
	<-done
	return nil
}

// ended waits up to d for done to be closed, and reports whether it was closed.
func ended(done <-chan struct{}, d time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}
