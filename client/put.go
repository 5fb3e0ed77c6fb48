package client

import (
	"cmp"
	"context"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Defaults of [NewJob]. Servers count jobs with a smaller number than DefaultPriority as
// urgent.
const (
	DefaultPriority uint32 = 1024
	DefaultTTR             = time.Minute
)

// A NewJob is a job to be put. Its times are sent in whole seconds: fractions are rounded
// up. The longest time is 4294967295 seconds, 136 years.
type NewJob struct {
	// Tube is where to put the job. If it is empty, that is the tube that the
	// connection uses; with a [Pool] "default".
	Tube string

	// Body may hold any bytes, and may be empty. Servers take up to 65535 bytes
	// unless they are configured otherwise; see [ErrJobTooBig].
	Body []byte

	// Priority is the place of the job among the ready jobs of its tube: the job with the
	// smallest number is reserved first. 0 is the most urgent. The default, for nil, is
	// [DefaultPriority]. To set it: Priority: new(uint32(100)).
	Priority *uint32

	// Delay is the time before the job is ready.
	Delay time.Duration

	// TTR, the time to run, limits the time for which a worker can hold the job without
	// touching it, at least a second. Then the job is ready again. 0 is [DefaultTTR].
	TTR time.Duration
}

// request returns the put of the job, in a connection that uses the tube used.
func (j *NewJob) request(used string) (request, error) {
	ttr := j.TTR
	if ttr == 0 {
		ttr = DefaultTTR
	}
	q := request{want: wire.Inserted, tube: j.Tube}
	q.Op, q.Body, q.Pri = wire.Put, j.Body, DefaultPriority
	if j.Priority != nil {
		q.Pri = *j.Priority
	}
	if q.tube == "" {
		q.tube = used
	}
	var err error
	if q.TTR, err = seconds("TTR", ttr); err != nil {
		return q, err
	}
	if q.Delay, err = seconds("delay", j.Delay); err != nil {
		return q, err
	}
	return q, CheckTube(q.tube)
}

// Put puts a job and returns its id. The server never uses an id twice. If a policy of
// the tube makes jobs unique, Put can return the id of an equal job that exists.
//
// Put sends the job a second time only if the server certainly did not receive it the
// first time. If that is uncertain, the error is [ErrOutcomeUnknown], and the caller
// decides: if it puts the job again, the job can exist twice; if not, it can be lost.
//
// Errors: [ErrDraining], [ErrJobTooBig], [ErrOutOfMemory], [ErrInternal], and
// [ErrBuried], with which Put also returns the job's id.
func (c *commands) Put(ctx context.Context, job NewJob) (id uint64, err error) {
	conn, err := c.of.checkOut(ctx, cmp.Or(job.Tube, usedTube))
	if err != nil {
		return 0, c.fail(&request{Command: wire.Command{Op: wire.Put}, tube: job.Tube}, err)
	}
	defer c.of.checkIn(conn)
	q, err := job.request(conn.used)
	if err != nil {
		return 0, c.fail(&q, err)
	}
	r, err := conn.do(ctx, &q)
	return r.ID, err
}
