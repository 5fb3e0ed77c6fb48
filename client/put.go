package client

import (
	"cmp"
	"context"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Defaults of [NewJob]. Servers count jobs with a priority number below DefaultPriority
// as urgent.
const (
	DefaultPriority uint32 = 1024
	DefaultTTR             = time.Minute
)

// A NewJob is a job to put. Durations are rounded up to whole seconds. The maximum is
// 4294967295 seconds, 136 years.
type NewJob struct {
	// Tube is the destination of the job. The default is "default".
	Tube string

	// Body can contain any bytes, and can be empty. By default, servers accept up to
	// 65535 bytes; see [ErrJobTooBig].
	Body []byte

	// Priority orders the ready jobs of a tube: the job with the smallest number is
	// reserved first, so 0 is the most urgent. Nil means [DefaultPriority]. To set it:
	// Priority: new(uint32(100)).
	Priority *uint32

	// Delay is the time before the job is ready.
	Delay time.Duration

	// TTR, the time to run, limits the time for which a worker can hold the job without
	// touching it. The minimum is a second. Then the job is ready again. 0 means
	// [DefaultTTR].
	TTR time.Duration
}

// request returns the put of the job.
func (j *NewJob) request() (request, error) {
	ttr := j.TTR
	if ttr == 0 {
		ttr = DefaultTTR
	}
	q := request{want: wire.Inserted, tube: cmp.Or(j.Tube, defaultTube)}
	q.Op, q.Body, q.Pri = wire.Put, j.Body, DefaultPriority
	if j.Priority != nil {
		q.Pri = *j.Priority
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

// Put puts a job and returns its id. The server never reuses an id. If a policy of the
// tube makes jobs unique, Put can return the id of an existing duplicate.
//
// Put repeats the command only if the server certainly did not receive it. Otherwise the
// error is [ErrOutcomeUnknown]: if the caller puts the job again, it can exist twice; if
// not, it can be lost.
//
// Errors include [ErrDraining], [ErrJobTooBig], [ErrOutOfMemory], [ErrInternal], and
// [ErrBuried], with which Put also returns the job's id.
func (c *commands) Put(ctx context.Context, job NewJob) (id uint64, err error) {
	q, err := job.request()
	if err != nil {
		return 0, c.fail(&q, err)
	}
	conn, err := c.of.checkOut(ctx, q.tube)
	if err != nil {
		return 0, c.fail(&q, err)
	}
	defer c.of.checkIn(conn)
	r, err := conn.do(ctx, &q)
	return r.ID, err
}
