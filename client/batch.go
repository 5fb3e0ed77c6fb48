package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Caps returns the commands that the server has in addition to those of beanstalkd. It
// returns none if the server lacks the command caps. You need not call Caps to use the
// commands; the client detects them itself.
func (c *commands) Caps(ctx context.Context) ([]string, error) {
	caps, err := c.askList(ctx, wire.Caps)
	if errors.Is(err, ErrUnknownCommand) {
		err = nil
	}
	return caps, err
}

// ask sends caps and the given commands, which the server might lack, in one round trip.
// beanstalkd has none of them.
func (s *stream) ask(ctx context.Context, cmds ...wire.Command) error {
	cmds = append(cmds, wire.Command{Op: wire.Caps})
	s.caps = []string{}
	return s.pipeline(ctx, &batch{
		n:      len(cmds),
		append: func(dst []byte, i int) []byte { return wire.AppendCommand(dst, &cmds[i]) },
		reply: func(i int, r *wire.Reply) (err error) {
			if r.Kind == wire.OK && r.Body != nil {
				s.caps, err = wire.ParseList(r.Body)
			}
			return err
		},
	})
}

// knows reports whether the server has a command, according to caps.
func (s *stream) knows(op wire.Op) bool { return slices.Contains(s.caps, op.String()) }

// ReserveMany reserves up to limit jobs, at most 1000, in one round trip. It can return
// fewer jobs than are ready. If no job is ready, it waits up to d for one, like
// [Conn.ReserveTimeout]; with [Never], it waits without a limit. It does not wait for
// further jobs. It returns at least one job or an error. The times to run of all jobs
// start at once.
//
// With beanpole, it sends one command; with other servers, it sends a command per job.
func (c *Conn) ReserveMany(ctx context.Context, limit int, d time.Duration) ([]*Job, error) {
	return c.deleteAndReserve(ctx, nil, limit, d, nil)
}

// DeleteAndReserve deletes jobs and reserves up to limit others that are ready, in one
// round trip. A worker uses it between jobs. It does not wait for a job: if none is
// ready, the error is [ErrTimedOut]. If deleted is not nil, it is called for each delete
// with its index in ids and its result; it must not use the connection. The jobs are
// reserved as by [Conn.ReserveMany].
func (c *Conn) DeleteAndReserve(ctx context.Context, ids []uint64, limit int, deleted func(i int, err error)) ([]*Job, error) {
	if deleted == nil {
		deleted = func(int, error) {}
	}
	return c.deleteAndReserve(ctx, ids, limit, 0, deleted)
}

// deleteAndReserve waits up to d for a job. d must be 0 if there are jobs to delete.
func (c *Conn) deleteAndReserve(ctx context.Context, ids []uint64, limit int, d time.Duration, deleted func(i int, err error)) ([]*Job, error) {
	q, err := reserveRequest(limit, d)
	if err != nil {
		return nil, c.fail(&q, err)
	}
	if err := c.acquire(ctx); err != nil {
		for i := range ids {
			deleted(i, c.deleteError(ids[i], err))
		}
		return nil, c.fail(&q, err)
	}
	defer c.release()
	t := &c.batchReserve
	t.q, t.max, t.ids, t.deleted = q, min(limit, wire.MaxBatch), ids, deleted
	defer t.clear()
	switch {
	case len(ids) == 0:
	case c.stream == nil || c.stream.stale() || t.max > 1 && c.stream.caps == nil || len(ids)+t.reserves() >= maxInFlight:
		t.deleteAlone(ctx, 0, 0)
	default:
		if t.send(ctx) == nil {
			return t.answer()
		}
		t.deleteAlone(ctx, t.answered, t.sent)
	}
	end := q.end()
	err = c.attempts(ctx, "", true, func() error {
		t.q.waitUntil(end)
		if t.max > 1 && c.stream.caps == nil {
			if err := c.check(c.stream.ask(ctx)); err != nil {
				return err
			}
		}
		return t.send(ctx)
	})
	if err != nil {
		return nil, c.fail(&q, err)
	}
	return t.answer()
}

// reserveRequest returns the request of a reserve that waits up to d.
func reserveRequest(limit int, d time.Duration) (q request, err error) {
	q = request{Command: wire.Command{Op: wire.ReserveTimeout, Timeout: wire.MaxTimeout}, want: wire.Reserved, wait: forever}
	if _, err = count(limit); err == nil && d != Never {
		q.wait = min(d, longestWait)
		q.Timeout, err = timeout(d)
	}
	return q, err
}

func (c *Conn) deleteError(id uint64, err error) error {
	return c.fail(&request{Command: wire.Command{Op: wire.Delete, ID: id}}, err)
}

// A batchReserve contains the deletes, the reserve and the results of a DeleteAndReserve.
// Each Conn reuses one.
type batchReserve struct {
	batch
	conn    *Conn
	ids     []uint64 // jobs to delete first
	deleted func(i int, err error)
	q       request
	max     int
	one     bool // whether a single reserve-batch is sent
	jobs    []*Job
	no      error // first reply without a job
}

func (t *batchReserve) clear() { *t = batchReserve{batch: t.batch, conn: t.conn} }

// reserves returns the number of commands that reserve the jobs: one if the server has
// reserve-batch.
func (t *batchReserve) reserves() int {
	if t.one = t.max > 1 && t.conn.stream.knows(wire.ReserveBatch); t.one {
		return 1
	}
	return t.max
}

// deleteAlone deletes the jobs with an index of at least first, without a reserve. The
// server might already have executed the deletes with an index below sent.
func (t *batchReserve) deleteAlone(ctx context.Context, first, sent int) {
	ids := t.ids[min(first, len(t.ids)):]
	errs := make([]error, len(ids))
	t.conn.many(ctx, errs, sent-first, "", func(i int, q *request) { q.Op, q.ID, q.want = wire.Delete, ids[i], wire.Deleted }, nil)
	for i, err := range errs {
		t.deleted(first+i, err)
	}
	t.ids = nil
}

// send sends the deletes and the reserve in one round trip. It returns an error of the
// connection.
func (t *batchReserve) send(ctx context.Context) error {
	c := t.conn
	// The jobs received before were lost with the connection.
	t.jobs, t.no = nil, nil
	t.n, t.sent, t.answered, t.wait = len(t.ids)+t.reserves(), 0, 0, t.q.wait
	return c.check(c.stream.pipeline(ctx, &t.batch))
}

// appendCommand appends command i.
func (t *batchReserve) appendCommand(dst []byte, i int) []byte {
	switch i -= len(t.ids); {
	case i < 0:
		return wire.AppendCommand(dst, &wire.Command{Op: wire.Delete, ID: t.ids[len(t.ids)+i]})
	case i > 0:
		return wire.AppendCommand(dst, &wire.Command{Op: wire.ReserveTimeout})
	case t.one:
		return wire.AppendCommand(dst, &wire.Command{Op: wire.ReserveBatch, Count: uint32(t.max), Timeout: t.q.Timeout})
	case t.q.wait == forever:
		return wire.AppendCommand(dst, &wire.Command{Op: wire.Reserve})
	}
	return wire.AppendCommand(dst, &wire.Command{Op: wire.ReserveTimeout, Timeout: t.q.Timeout})
}

// takeReply handles the reply to command i, and reads the jobs of a batch that follow.
func (t *batchReserve) takeReply(i int, r *wire.Reply) error {
	switch {
	case i < len(t.ids):
		var err error
		if r.Kind != wire.Deleted {
			err = t.conn.deleteError(t.ids[i], replyError(r))
		}
		t.deleted(i, err)
		return nil
	case r.Kind == wire.Reserved:
		t.jobs = append(t.jobs, t.conn.job(r))
		return nil
	case r.Kind != wire.ReservedBatch || !t.one:
		no := replyError(r)
		t.no = cmp.Or(t.no, no)
		if errors.Is(no, ErrProtocol) {
			return no
		}
		return nil
	case r.N == 0:
		t.no = ErrTimedOut
	case r.N > uint64(t.max):
		return fmt.Errorf("%w: a batch of %d jobs, more than requested", ErrProtocol, r.N)
	}
	s := t.conn.stream
	if err := s.extendDeadline(0); err != nil { // the wait is over: the jobs follow at once
		return err
	}
	for range r.N {
		if err := s.read(r); err != nil {
			return err
		}
		if r.Kind != wire.Reserved {
			return fmt.Errorf("%w: %v in a batch", ErrProtocol, r.Kind)
		}
		t.jobs = append(t.jobs, t.conn.job(r))
	}
	return nil
}

// answer returns the jobs, or the reason why there are none.
func (t *batchReserve) answer() ([]*Job, error) {
	if len(t.jobs) == 0 {
		return nil, t.conn.fail(&t.q, t.no)
	}
	return t.jobs, nil
}
