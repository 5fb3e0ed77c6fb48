package client

import (
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
	err := c.ready(ctx, "", true)
	if err == nil && c.stream.caps == nil {
		err = c.check(c.stream.ask(ctx))
	}
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

// tryBatch makes one attempt of a reserve-batch. ok is false if the server does not have it. no is why there are no jobs.
func (c *Conn) tryBatch(ctx context.Context, q *request, max int) (jobs []*Job, no error, ok bool, err error) {
	s := c.stream
	if s.caps == nil {
		if err := c.check(s.ask(ctx)); err != nil {
			return nil, nil, false, err
		}
	}
	if !s.knows(wire.ReserveBatch) {
		return nil, nil, false, nil
	}
	var r wire.Reply
	cmd := batchCommand(max, q)
	if _, err = s.exchange(ctx, &cmd, q.wait, &r); err == nil {
		if err = s.begin(ctx, 0); err == nil {
			jobs, no, err = s.readBatch(&r, max, c)
		}
		err = s.end(err)
	}
	return jobs, no, true, c.check(err)
}

// batchCommand returns the command for up to n jobs.
func batchCommand(n int, q *request) wire.Command {
	cmd := wire.Command{Op: wire.ReserveBatch, Count: uint32(min(n, wire.MaxBatch))}
	if cmd.Timeout = q.Timeout; q.wait == 0 {
		cmd.Timeout = 0
	}
	return cmd
}

// readBatch reads up to max jobs that follow the first reply to a reserve-batch. no is why there are none.
func (s *stream) readBatch(r *wire.Reply, max int, c *Conn) (jobs []*Job, no, err error) {
	switch {
	case r.Kind != wire.ReservedBatch:
		no = replyError(r)
		if errors.Is(no, ErrProtocol) {
			err = no
		}
		return nil, no, err
	case r.N == 0:
		return nil, ErrTimedOut, nil
	case r.N > uint64(max):
		return nil, nil, fmt.Errorf("%w: a batch of %d jobs", ErrProtocol, r.N)
	}
	alloc := allocator{conn: c, left: int(r.N)}
	jobs = make([]*Job, 0, r.N)
	for range r.N {
		if err := s.read(r); err != nil {
			return jobs, nil, err
		}
		if r.Kind != wire.Reserved {
			return jobs, nil, fmt.Errorf("%w: %v in a batch", ErrProtocol, r.Kind)
		}
		jobs = append(jobs, alloc.job(r))
	}
	return jobs, nil, nil
}

// DeleteBatch deletes up to 1000 jobs with one command and tells how many there were, where [Conn.DeleteMany] tells
// of each. A job that cannot be deleted, as Delete says, does not count, and is no error.
//
// Only beanpole has this command. With other servers the error is [ErrUnknownCommand].
func (c *Conn) DeleteBatch(ctx context.Context, ids []uint64) (deleted int, err error) {
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
	err = c.hold(ctx, &q, nil, func(r *wire.Reply) error {
		deleted = int(r.N)
		return nil
	})
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
	a := afterDeletes{ids: ids, limit: min(limit, wire.MaxBatch), deleted: deleted}
	a.res = request{Command: wire.Command{Op: wire.ReserveTimeout}, want: wire.Reserved, wait: min(d, longestWait)}
	var err error
	if d == Never {
		a.res.wait, a.res.Timeout = forever, wire.MaxTimeout
	} else {
		a.res.Timeout, err = timeout(d)
	}
	if err == nil {
		_, err = count(limit)
	}
	if err != nil {
		return nil, c.fail(&a.res, err)
	}
	if err := c.acquire(context.WithoutCancel(ctx)); err != nil {
		a.told(c, len(a.ids), err)
		return nil, c.fail(&a.res, err)
	}
	defer c.release()
	var retry retrier
	if d == 0 && ctx.Err() == nil {
		ctx = context.WithoutCancel(ctx)
	}
	if c.stream == nil || c.stream.stale() || ctx.Err() != nil || len(ids) > ahead || len(ids) == 0 {
		rs := results{n: len(ids)}
		c.many(context.WithoutCancel(ctx), &rs, 0, rs.n, "", a.build, nil)
		for i := range ids {
			if rs.errs == nil {
				deleted(i, nil)
			} else {
				deleted(i, rs.errs[i])
			}
		}
		if ctx.Err() != nil {
			return nil, c.fail(&a.res, context.Cause(ctx))
		}
	} else {
		jobs, no, err := c.atOnce(ctx, &a)
		switch {
		case len(jobs) > 0 && err == nil:
			return jobs, nil
		case err == nil:
			return nil, c.fail(&a.res, no)
		}
		if err = retry.next(ctx, c, err); err != nil {
			return nil, c.fail(&a.res, err)
		}
	}
	return c.reserveMany(ctx, &a.res, a.limit, true, &retry)
}

// afterDeletes is a reserve that follows deletes.
type afterDeletes struct {
	ids     []uint64
	limit   int
	deleted func(i int, err error)
	res     request
	next    int // the first delete of which nothing is known
}

func (a *afterDeletes) build(i int, q *request) {
	q.Op, q.ID, q.want = wire.Delete, a.ids[i], wire.Deleted
}

// told tells of the next n deletes that they have ended so.
func (a *afterDeletes) told(c *Conn, n int, err error) {
	for range n {
		if err == nil {
			a.deleted(a.next, nil)
		} else {
			var q request
			a.build(a.next, &q)
			a.deleted(a.next, c.fail(&q, err))
		}
		a.next++
	}
}

// atOnce sends all commands at once. An error is that of the reserve.
func (c *Conn) atOnce(ctx context.Context, a *afterDeletes) (jobs []*Job, no, err error) {
	s := c.stream
	if err := s.begin(context.WithoutCancel(ctx), 0); err != nil {
		a.told(c, len(a.ids), err)
		return nil, nil, c.check(s.end(err))
	}
	s.out = s.out[:0]
	var q request
	ends := make([]int, 0, ahead)
	for i := range a.ids {
		a.build(i, &q)
		s.out = wire.AppendCommand(s.out, &q.Command)
		ends = append(ends, len(s.out))
	}
	batch := a.limit > 1 && s.knows(wire.ReserveBatch)
	switch {
	case batch:
		cmd := batchCommand(a.limit, &a.res)
		s.out = wire.AppendCommand(s.out, &cmd)
	case a.res.wait == forever:
		s.out = wire.AppendReserve(s.out)
	default:
		s.out = wire.AppendReserveTimeout(s.out, a.res.Timeout)
	}
	n, err := s.write()
	var r wire.Reply
	for err == nil && a.next < len(a.ids) {
		if err = s.read(&r); err != nil {
			break
		}
		if r.Kind == wire.Deleted {
			a.told(c, 1, nil)
		} else {
			a.told(c, 1, replyError(&r))
		}
	}
	if err = c.check(s.end(err)); err != nil {
		for a.next < len(a.ids) {
			why := err
			if n >= ends[a.next] {
				why = unknown(err)
			}
			a.told(c, 1, why)
		}
		return nil, nil, err
	}
	if err := s.begin(ctx, a.res.wait); err != nil {
		return nil, nil, c.check(s.end(err))
	}
	switch err = s.read(&r); {
	case err != nil:
	case batch:
		jobs, no, err = s.readBatch(&r, a.limit, c)
	case r.Kind == wire.Reserved:
		jobs = append(jobs, c.job(&r))
	default:
		no = replyError(&r)
	}
	return jobs, no, c.check(s.end(err))
}
