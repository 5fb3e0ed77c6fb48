package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Reserve reserves the next job of the watched tubes: the job with the smallest priority
// number and, among equals, the oldest. If there is none, it waits until ctx ends.
//
// If ctx has a deadline, the server waits until then, so that the connection is kept when
// the deadline passes. The error is then both [ErrTimedOut] and context.DeadlineExceeded.
// The server waits whole seconds; for the remaining fraction of a second, the client
// polls ten times a second. If ctx is canceled, the connection is closed, and the server
// makes all jobs ready that this connection has reserved. A connection that holds jobs
// should therefore reserve with a deadline, or with [Conn.ReserveTimeout].
//
// [ErrDeadlineSoon] means that the time to run of another job of this connection is about
// to end: finish, touch or release that job first.
func (c *Conn) Reserve(ctx context.Context) (*Job, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return c.reserve(ctx, &request{Command: wire.Command{Op: wire.Reserve}, want: wire.Reserved, wait: forever})
	}
	// The server's reply can arrive shortly after the deadline.
	late, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(lateAnswer))
	defer cancel()
	late, stop := cancelledBy(late, ctx)
	defer stop()
	for {
		whole := (min(time.Until(deadline), longestWait) + lateAnswer/2).Truncate(time.Second)
		job, err := c.ReserveTimeout(late, max(whole, 0))
		if !errors.Is(err, ErrTimedOut) {
			return job, asTimeout(ctx, c.addr, err)
		}
		pause := time.NewTimer(pollPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, reserveError(c.addr, fmt.Errorf("%w: %w", ErrTimedOut, context.Cause(ctx)))
		}
	}
}

const (
	lateAnswer = 100 * time.Millisecond
	pollPause  = 100 * time.Millisecond
)

// cancelledBy returns a context that ends when other is canceled, but not at its
// deadline.
func cancelledBy(ctx, other context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() {
		if !errors.Is(other.Err(), context.DeadlineExceeded) {
			cancel(context.Cause(other))
		}
	})
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// ReserveTimeout is [Conn.Reserve] with a timeout that the server enforces. It waits up
// to d, rounded up to whole seconds, and then returns [ErrTimedOut]. With 0, it does not
// wait; with [Never], it waits without a limit.
func (c *Conn) ReserveTimeout(ctx context.Context, d time.Duration) (*Job, error) {
	q, err := reserveRequest(1, d)
	if err != nil {
		return nil, c.fail(&q, err)
	}
	return c.reserve(ctx, &q)
}

// ReserveJob reserves the job with this id if it is ready, delayed or buried, in any
// tube. It never waits. Otherwise the error is [ErrNotFound], or [ErrBadFormat] with
// servers before beanstalkd 1.12.
func (c *Conn) ReserveJob(ctx context.Context, id uint64) (*Job, error) {
	return c.reserve(ctx, &request{Command: wire.Command{Op: wire.ReserveJob, ID: id}, want: wire.Reserved})
}

// reserve sends a command whose reply contains a job.
func (c *Conn) reserve(ctx context.Context, q *request) (*Job, error) {
	if err := c.acquire(ctx); err != nil {
		return nil, c.fail(q, err)
	}
	defer c.release()
	r, err := c.do(ctx, q)
	if err != nil {
		return nil, err
	}
	return c.job(&r), nil
}

// job returns the job of a reply.
func (c *Conn) job(r *wire.Reply) *Job {
	j := new(Job)
	j.set(c, r, append(make([]byte, 0, len(r.Body)), r.Body...))
	return j
}
