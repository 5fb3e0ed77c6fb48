package client

import (
	"context"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// DefaultTTR is the time to run of a job that names none.
const DefaultTTR = time.Minute

// A NewJob is a job to be put. Times are whole seconds to the server: fractions
// are rounded up. They may be up to 4294967295 seconds, 136 years.
type NewJob struct {
	// Tube is where to put it; empty, the tube that the connection uses.
	Tube string

	// Body is any bytes, none too. Servers take up to 65535 of them unless they
	// are told otherwise; see [ErrJobTooBig].
	Body []byte

	// Priority says which jobs go first. 0 is [DefaultPriority]; see [MostUrgent].
	Priority Priority

	// Delay is how long the job waits before it is ready.
	Delay time.Duration

	// TTR, time to run, is how long a worker may hold the job without a sign
	// of life, at least a second. When it is over, the job is ready again. 0
	// is [DefaultTTR].
	TTR time.Duration
}

// request returns the put of the job, in a connection that uses the tube used.
func (j *NewJob) request(used string) (request, error) {
	ttr := j.TTR
	if ttr == 0 {
		ttr = DefaultTTR
	}
	q := request{want: wire.Inserted, tube: j.Tube}
	q.Op, q.Body = wire.Put, j.Body
	if q.tube == "" {
		q.tube = used
	}
	var err error
	if q.Pri, err = j.Priority.number(); err != nil {
		return q, err
	}
	if q.TTR, err = seconds("TTR", ttr); err != nil {
		return q, err
	}
	if q.Delay, err = seconds("delay", j.Delay); err != nil {
		return q, err
	}
	return q, CheckTube(q.tube)
}

// Put puts a job and returns its id, which the server gives no other job while
// it runs.
//
// A put is never sent a second time unless it is certain that the server did not
// get the first. If that is not known the error is [ErrOutcomeUnknown], and the
// caller decides: to put again may give the job twice, not to may lose it.
//
// Errors: [ErrDraining], [ErrJobTooBig], [ErrOutOfMemory], [ErrInternal]; with
// [ErrBuried] the id is that of the job.
func (c *Conn) Put(ctx context.Context, job NewJob) (id uint64, err error) {
	if err := c.acquire(ctx); err != nil {
		return 0, c.fail(&request{Command: wire.Command{Op: wire.Put}, tube: job.Tube}, err)
	}
	defer c.release()
	q, err := job.request(c.used)
	if err != nil {
		return 0, c.fail(&q, err)
	}
	r, err := c.do(ctx, &q)
	return r.ID, err
}
