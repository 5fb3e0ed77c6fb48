package client

import (
	"context"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Reserve reserves the next job of the watched tubes: the job with the smallest priority
// number and, among equals, the oldest. If there is none, it waits until ctx ends.
//
// When ctx ends, the connection is closed, and the server makes all jobs ready that this
// connection has reserved. A connection that holds jobs should therefore reserve with
// [Conn.ReserveTimeout].
//
// [ErrDeadlineSoon] means that the time to run of another job of this connection is about
// to end: finish, touch or release that job first.
func (c *Conn) Reserve(ctx context.Context) (*Job, error) {
	return c.reserve(ctx, &request{Command: wire.Command{Op: wire.Reserve}, want: wire.Reserved, wait: forever})
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

// job returns the job of a reply. The job owns its body.
func (c *Conn) job(r *wire.Reply) *Job {
	j := &Job{ID: r.ID, Body: append(make([]byte, 0, len(r.Body)), r.Body...), conn: c}
	if r.Facts != nil && wire.ParseFacts(r.Facts, &c.facts) {
		j.Facts = &JobStats{
			ID:       r.ID,
			State:    StateReserved,
			Tube:     c.facts.Tube,
			Priority: uint32(c.facts.Pri),
			Reserves: c.facts.Reserves,
			Timeouts: c.facts.Timeouts,
			Age:      time.Duration(c.facts.Age) * time.Second,
			TTR:      time.Duration(c.facts.TTR) * time.Second,
		}
	}
	return j
}
