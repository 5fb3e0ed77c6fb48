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

// Caps returns the commands that the server has and beanstalkd has not: none, if it is a server that
// does not know how to tell. The client looks by itself whether it can use them.
func (c *Conn) Caps(ctx context.Context) ([]string, error) {
	q := request{Command: wire.Command{Op: wire.Caps}}
	if err := c.acquire(ctx); err != nil {
		return nil, c.fail(&q, err)
	}
	defer c.release()
	err := c.attempts(ctx, "", true, new(retrier), func() error {
		if c.stream.caps != nil {
			return nil
		}
		return c.check(c.stream.ask(ctx))
	})
	if err != nil {
		return nil, c.fail(&q, err)
	}
	return slices.Clone(c.stream.caps), nil
}

// ask asks the server what it can do, and gives commands that it may not know, in one round trip. beanstalkd knows
// none of them.
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

// knows reports whether the server has said that it has a command.
func (s *stream) knows(op wire.Op) bool { return slices.Contains(s.caps, op.String()) }

// ReserveBatch is [Conn.ReserveMany] with one command. The server takes up to limit jobs, 1000 at most; it may take
// fewer than are ready, and one only if it had to wait. The time to run of all of them begins at once. beanpole
// has the command; with servers that do not have it, this is ReserveMany.
func (c *Conn) ReserveBatch(ctx context.Context, limit int, d time.Duration) ([]*Job, error) {
	return c.DeleteAndReserve(ctx, nil, limit, d, nil)
}

// A reserving is a command that takes jobs, and what came of it.
type reserving struct {
	*Conn
	q     *request
	max   int
	batch bool // it is a reserve-batch
	jobs  []*Job
	alloc allocator
	no    error // the first answer that holds no job
}

func (c *Conn) reserving(q *request, max int) reserving {
	return reserving{Conn: c, q: q, max: max, alloc: allocator{conn: c, left: max}}
}

// append appends the command.
func (t *reserving) append(dst []byte) []byte {
	switch {
	case t.batch:
		cmd := wire.Command{Op: wire.ReserveBatch, Count: uint32(min(t.max, wire.MaxBatch)), Timeout: t.q.Timeout}
		return wire.AppendCommand(dst, &cmd)
	case t.q.wait == forever:
		return wire.AppendReserve(dst)
	}
	return wire.AppendReserveTimeout(dst, t.q.Timeout)
}

// reply takes an answer to it, and reads the jobs of a batch, which follow. After an error the connection is no good.
func (t *reserving) reply(r *wire.Reply) error {
	switch {
	case r.Kind == wire.Reserved:
		t.jobs = append(t.jobs, t.alloc.job(r))
		return nil
	case r.Kind != wire.ReservedBatch || !t.batch:
		no := replyError(r)
		t.no = cmp.Or(t.no, no)
		if errors.Is(no, ErrProtocol) {
			return no
		}
		return nil
	case r.N == 0:
		t.no = ErrTimedOut
	case r.N > uint64(t.max):
		return fmt.Errorf("%w: a batch of %d jobs", ErrProtocol, r.N)
	}
	if err := t.stream.again(0); err != nil { // the wait is over: the jobs follow at once
		return err
	}
	n := int(r.N)
	t.jobs, t.alloc.left = make([]*Job, 0, n), n
	for range n {
		if err := t.stream.read(r); err != nil {
			return err
		}
		if r.Kind != wire.Reserved {
			return fmt.Errorf("%w: %v in a batch", ErrProtocol, r.Kind)
		}
		t.jobs = append(t.jobs, t.alloc.job(r))
	}
	return nil
}

// DeleteBatch deletes up to 1000 jobs with one command and tells how many there were, where [Conn.DeleteMany] tells
// of each. A job that cannot be deleted, as Delete says, does not count, and is no error.
//
// Only beanpole has this command. With other servers the error is [ErrUnknownCommand].
func (c *commands) DeleteBatch(ctx context.Context, ids []uint64) (deleted int, err error) {
	q := request{Command: wire.Command{Op: wire.DeleteBatch}, want: wire.DeletedBatch}
	if len(ids) == 0 {
		return 0, nil
	}
	if len(ids) > wire.MaxBatch {
		return 0, c.fail(&q, fmt.Errorf("%w: %d jobs: want at most %d", ErrInvalid, len(ids), wire.MaxBatch))
	}
	for _, id := range ids {
		q.Text = wire.AppendID(q.Text, id)
	}
	deleted, err = c.askNumber(ctx, &q, nil)
	return deleted, tooLong(&q, err)
}

// DeleteAndReserve deletes jobs and takes up to limit others, in one round trip. A worker uses it between
// jobs. deleted, if it is not nil, is called for each delete with its place among the ids and its result, as
// [Conn.Delete] returns it, before the reserve waits; it must not use the connection. The end of ctx
// ends only the wait, so the results of the deletes are known: with a d of 0 nothing. The jobs are reserved as by
// [Conn.ReserveBatch], and with [Never] the wait has no limit.
func (c *Conn) DeleteAndReserve(ctx context.Context, ids []uint64, limit int, d time.Duration, deleted func(i int, err error)) ([]*Job, error) {
	if deleted == nil {
		deleted = func(int, error) {}
	}
	q := request{Command: wire.Command{Op: wire.ReserveTimeout, Timeout: wire.MaxTimeout}, want: wire.Reserved, wait: forever}
	_, err := count(limit)
	if err == nil && d != Never {
		q.wait = min(d, longestWait)
		q.Timeout, err = timeout(d)
	}
	if err != nil {
		return nil, c.fail(&q, err)
	}
	del := func(i int, q *request) { q.Op, q.ID, q.want = wire.Delete, ids[i], wire.Deleted }
	if err := c.acquire(context.WithoutCancel(ctx)); err != nil {
		for i := range ids {
			deleted(i, c.failed(del, i, err))
		}
		return nil, c.fail(&q, err)
	}
	defer c.release()
	t := c.reserving(&q, min(limit, wire.MaxBatch))
	if d == 0 && ctx.Err() == nil {
		ctx = context.WithoutCancel(ctx)
	}
	if c.stream == nil || c.stream.stale() || ctx.Err() != nil || len(ids)+1 >= ahead || len(ids) == 0 {
		errs := make([]error, len(ids))
		c.many(context.WithoutCancel(ctx), errs, "", del, nil)
		for i, err := range errs {
			deleted(i, err)
		}
		if ctx.Err() != nil {
			return nil, c.fail(&q, context.Cause(ctx))
		}
		return c.reserveMany(ctx, &q, t.max, true, new(retrier))
	}
	err = c.atOnce(ctx, len(ids), del, deleted, &t)
	if err == nil {
		return t.answer()
	}
	var retry retrier
	if err = retry.next(ctx, c, err); err != nil {
		return nil, c.fail(&q, err)
	}
	return c.reserveMany(ctx, &q, t.max, true, &retry)
}

// atOnce sends n deletes and a reserve at once. An error is that of the reserve.
func (c *Conn) atOnce(ctx context.Context, n int, del func(int, *request), deleted func(int, error), t *reserving) error {
	s := c.stream
	t.batch = t.max > 1 && s.knows(wire.ReserveBatch)
	var out request
	b := batch{
		n: n + 1,
		append: func(dst []byte, i int) []byte {
			if i == n {
				return t.append(dst)
			}
			del(i, &out)
			return wire.AppendCommand(dst, &out.Command)
		},
		reply: func(i int, r *wire.Reply) (err error) {
			if i == n {
				return t.reply(r)
			}
			if r.Kind != wire.Deleted {
				err = c.failed(del, i, replyError(r))
			}
			if deleted(i, err); i == n-1 {
				s.end(nil) // ctx ends only the wait
				return s.begin(ctx, t.q.wait)
			}
			return nil
		},
	}
	err := c.check(s.pipeline(context.WithoutCancel(ctx), &b))
	if err != nil {
		for i := b.answered; i < n; i++ {
			why := err
			if i < b.sent {
				why = unknown(err)
			}
			deleted(i, c.failed(del, i, why))
		}
	}
	return err
}

// answer returns the jobs, or why there are none.
func (t *reserving) answer() ([]*Job, error) {
	if len(t.jobs) == 0 {
		return nil, t.fail(t.q, t.no)
	}
	return t.jobs, nil
}
