package client

import (
	"context"
	"errors"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Reserve takes the next job of the tubes that the connection watches: the one
// with the smallest priority, and of those the oldest. If there is none it waits,
// as long as ctx allows.
//
// If ctx has a deadline, the server is told how many whole seconds to wait, so
// that the connection outlives the deadline; the error is then both [ErrTimedOut]
// and context.DeadlineExceeded. If ctx is cancelled, the connection is given up,
// and the server keeps or takes back the job, and takes back all others that
// this connection has reserved. A connection that holds jobs should therefore
// reserve with a deadline, or with [Conn.ReserveTimeout].
//
// [ErrDeadlineSoon] means that another job of this connection must be looked
// after first.
func (c *Conn) Reserve(ctx context.Context) (*Job, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return c.reserve(ctx, &request{Command: wire.Command{Op: wire.Reserve}, want: wire.Reserved, wait: forever})
	}
	whole := time.Until(deadline).Truncate(time.Second)
	job, err := c.ReserveTimeout(ctx, max(whole, 0))
	if errors.Is(err, ErrTimedOut) {
		<-ctx.Done() // less than a second
		err = errors.Join(err, context.Cause(ctx))
	}
	return job, err
}

// ReserveTimeout is [Conn.Reserve] with a limit that the server keeps: it waits d,
// rounded up to whole seconds, and then answers [ErrTimedOut]. With 0 it does not
// wait.
func (c *Conn) ReserveTimeout(ctx context.Context, d time.Duration) (*Job, error) {
	q := request{want: wire.Reserved, wait: d}
	q.Op = wire.ReserveTimeout
	var err error
	if q.Timeout, err = timeout(d); err != nil {
		return nil, c.fail(&q, err)
	}
	return c.reserve(ctx, &q)
}

// ReserveJob takes the job with this id if it is ready, delayed or buried,
// whatever its tube. It never waits. Otherwise the error is [ErrNotFound]; with
// servers before beanstalkd 1.12 it is [ErrBadFormat].
func (c *Conn) ReserveJob(ctx context.Context, id uint64) (*Job, error) {
	return c.reserve(ctx, &request{Command: wire.Command{Op: wire.ReserveJob, ID: id}, want: wire.Reserved})
}

// reserve sends a command whose answer is a job.
func (c *Conn) reserve(ctx context.Context, q *request) (*Job, error) {
	if err := c.acquire(ctx); err != nil {
		return nil, c.fail(q, err)
	}
	defer c.release()
	if q.tube == usedTube {
		q.tube = c.used
	}
	r, err := c.do(ctx, q)
	if err != nil {
		return nil, err
	}
	return &Job{ID: r.ID, Body: append(make([]byte, 0, len(r.Body)), r.Body...), conn: c}, nil
}
