package client

import (
	"context"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A Job is a reserved job. It belongs to its connection: only there can it be released,
// buried or touched, or deleted while it is reserved. Its methods, except Touch, must not
// be called concurrently.
type Job struct {
	ID   uint64
	Body []byte

	// Facts describes the job at the time of the reserve, if [Options].Facts is set and
	// the server is a beanpole. Its fields Tube, Priority, Reserves, Timeouts, Age and
	// TTR are set. Otherwise Facts is nil.
	Facts *JobStats

	// Reason is the reason for the next Release or Bury of the job. The first 200 bytes are
	// sent in the same round trip, with spaces in place of control characters. Servers other
	// than beanpole get no reason.
	Reason string

	conn *Conn
	pool *Pool // nil if the job is finished or was not reserved from a pool
}

// askedFacts contains the words of want for Job.Facts.
const askedFacts = wire.Facts(0x673421)

// Server returns the address of the job's server, as passed to [Dial].
func (j *Job) Server() string { return j.conn.addr }

// Delete deletes the job when the work is done. See [Conn.Delete].
func (j *Job) Delete(ctx context.Context) error { return j.finish(j.conn.Delete(ctx, j.ID)) }

// Release returns the job with its priority. It is ready again after the delay. Without
// Facts, Release needs an additional round trip to get the priority. [Conn.Release] sets
// another priority.
func (j *Job) Release(ctx context.Context, delay time.Duration) error {
	priority, err := j.priority(ctx)
	if err == nil {
		err = j.conn.giveBack(ctx, releaseRequest(j.ID, priority), delay, j.Reason)
	}
	return j.finish(err)
}

// Bury sets the job aside with its priority until it is kicked, deleted, or reserved with
// [Conn.ReserveJob]. Without Facts, Bury needs an additional round trip to get the
// priority. [Conn.Bury] sets another priority.
func (j *Job) Bury(ctx context.Context) error {
	priority, err := j.priority(ctx)
	if err == nil {
		err = j.conn.giveBack(ctx, buryRequest(j.ID, priority), 0, j.Reason)
	}
	return j.finish(err)
}

func (j *Job) priority(ctx context.Context) (uint32, error) {
	if j.Facts != nil {
		return j.Facts.Priority, nil
	}
	st, err := j.Stats(ctx)
	if err != nil {
		return 0, err
	}
	return st.Priority, nil
}

// Touch restarts the job's time to run. See [Conn.Touch].
func (j *Job) Touch(ctx context.Context) error { return j.conn.Touch(ctx, j.ID) }

// Stats returns the statistics of the job. See [Conn.StatsJob].
func (j *Job) Stats(ctx context.Context) (*JobStats, error) { return j.conn.StatsJob(ctx, j.ID) }

// Abandon gives up a job that was reserved from a [Pool] or from [Servers] and is not
// finished. It closes the job's connection, so that the server makes the job ready again.
// On a finished job, or a job without a pool, it has no effect, so it can be deferred
// right after a reserve.
func (j *Job) Abandon() {
	if j.pool != nil {
		j.conn.Close()
		j.finish(nil)
	}
}

// Delete deletes a job that is ready, delayed or buried, or that this connection has
// reserved. Otherwise the error is [ErrNotFound]. Use [Job.Delete] for a job that a
// [Pool] has reserved.
func (c *commands) Delete(ctx context.Context, id uint64) error {
	return c.callByID(ctx, wire.Delete, wire.Deleted, id)
}

// Release returns a job that this connection has reserved, with a new priority. It is
// ready again after the delay.
func (c *Conn) Release(ctx context.Context, id uint64, priority uint32, delay time.Duration) error {
	return c.giveBack(ctx, releaseRequest(id, priority), delay, "")
}

func releaseRequest(id uint64, priority uint32) request {
	return request{Command: wire.Command{Op: wire.Release, ID: id, Pri: priority}, want: wire.Released}
}

func buryRequest(id uint64, priority uint32) request {
	return request{Command: wire.Command{Op: wire.Bury, ID: id, Pri: priority}, want: wire.Buried}
}

// giveBack sends a release or bury, after a note if there is a reason and the server
// supports notes.
func (c *Conn) giveBack(ctx context.Context, q request, delay time.Duration, reason string) (err error) {
	if q.Delay, err = seconds("delay", delay); err != nil {
		return c.fail(&q, err)
	}
	note := request{Command: wire.Command{Op: wire.Note, ID: q.ID, Text: wire.CutNote(reason)}, want: wire.Noted}
	if len(note.Text) == 0 {
		return c.call(ctx, &q)
	}
	if err := c.acquire(ctx); err != nil {
		return c.fail(&q, err)
	}
	defer c.release()
	if err = c.ready(ctx, "", false); err == nil && c.stream.caps == nil {
		err = c.check(c.stream.ask(ctx))
	}
	switch {
	case err != nil:
		return c.fail(&q, err)
	case !c.stream.knows(wire.Note):
		_, err = c.do(ctx, &q)
		return err
	}
	errs := make([]error, 2)
	c.many(ctx, errs, 0, "", func(i int, r *request) { *r = [...]request{note, q}[i] }, nil)
	return errs[1]
}

// Bury sets aside a job that this connection has reserved, with a new priority, until it
// is kicked, deleted, or reserved with [Conn.ReserveJob].
func (c *Conn) Bury(ctx context.Context, id uint64, priority uint32) error {
	return c.giveBack(ctx, buryRequest(id, priority), 0, "")
}

// Touch restarts the time to run of a job that this connection has reserved.
func (c *Conn) Touch(ctx context.Context, id uint64) error {
	return c.callByID(ctx, wire.Touch, wire.Touched, id)
}

// KickJob makes a buried or delayed job of any tube ready.
func (c *commands) KickJob(ctx context.Context, id uint64) error {
	return c.callByID(ctx, wire.KickJob, wire.Kicked, id)
}
