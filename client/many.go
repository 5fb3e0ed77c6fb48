package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A BatchError contains the errors of a batch's commands. errors.Is and errors.As examine
// all of them.
type BatchError struct {
	Errs []error // one per command, in order; nil if it succeeded
}

// Error returns the number of failed commands and the first error.
func (e *BatchError) Error() string {
	failed := e.Unwrap()
	return fmt.Sprintf("%d of %d failed; the first: %v", len(failed), len(e.Errs), failed[0])
}

// Unwrap returns the errors of the failed commands.
func (e *BatchError) Unwrap() []error {
	var failed []error
	for _, err := range e.Errs {
		if err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

// batchError returns a *BatchError if any command has failed, and otherwise nil.
func batchError(errs []error) error {
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return &BatchError{errs}
	}
	return nil
}

// PutMany puts jobs in one round trip, or a few if there are thousands. It returns their
// ids in the order of the jobs, with 0 for a job without an id. If one of the jobs is
// invalid, nothing is sent. Each change of the tube between successive jobs costs a round
// trip, so sort the jobs by tube.
//
// PutMany is not a transaction: some puts can fail while others succeed, and puts of
// other clients can come between them. The error is a [BatchError] with the error of each
// failed put, as [Conn.Put] returns it.
func (c *commands) PutMany(ctx context.Context, jobs []NewJob) (ids []uint64, err error) {
	conn, err := c.of.checkOut(ctx, "")
	if err != nil {
		return nil, c.fail(&putMany, err)
	}
	defer c.of.checkIn(conn)
	for i := range jobs {
		if _, err := jobs[i].request(); err != nil {
			return nil, c.fail(&putMany, fmt.Errorf("job %d: %w", i, err))
		}
	}
	ids = make([]uint64, len(jobs))
	errs := make([]error, len(jobs))
	for first, end := 0, 0; first < len(jobs); first = end {
		for end < len(jobs) && jobs[end].Tube == jobs[first].Tube {
			end++
		}
		some := jobs[first:end]
		q, _ := some[0].request()
		conn.many(ctx, errs[first:end], 0, q.tube, func(i int, q *request) {
			*q, _ = some[i].request()
		}, func(i int, r *wire.Reply) {
			ids[first+i] = r.ID
		})
	}
	return ids, batchError(errs)
}

var putMany = request{Command: wire.Command{Op: wire.Put}}

// DeleteMany deletes jobs in one round trip, or a few if there are thousands. The error
// is a [BatchError] with the error of each failed delete, as [Conn.Delete] returns it.
// Jobs must not be reserved by another connection.
func (c *commands) DeleteMany(ctx context.Context, ids []uint64) error {
	return c.askMany(ctx, len(ids), func(i int, q *request) { q.Op, q.ID, q.want = wire.Delete, ids[i], wire.Deleted }, nil)
}

// StatsTubeMany is [Conn.StatsTube] for many tubes, in one round trip or a few. The
// result has the order of the names, and nil for each tube that failed. If a name is
// invalid, nothing is sent. Otherwise the error is a [BatchError].
func (c *commands) StatsTubeMany(ctx context.Context, tubes []string) ([]*TubeStats, error) {
	for _, tube := range tubes {
		if err := CheckTube(tube); err != nil {
			return nil, c.fail(&request{Command: wire.Command{Op: wire.StatsTube, Tube: []byte(tube)}}, err)
		}
	}
	stats := make([]*TubeStats, len(tubes))
	var malformed error
	err := c.askMany(ctx, len(tubes), func(i int, q *request) {
		q.Op, q.Tube, q.want = wire.StatsTube, []byte(tubes[i]), wire.OK
	}, func(i int, r *wire.Reply) {
		st, err := parseStats[TubeStats](r)
		if err != nil {
			malformed = fmt.Errorf("%w: %w", ErrProtocol, err)
		}
		stats[i] = st
	})
	return stats, cmp.Or(err, malformed)
}

// many sends a command for each element of errs, which it sets. build creates command i.
// If done is not nil, it receives the successful replies, and those to puts whose jobs
// the server has buried. After a lost connection, many repeats the commands that the
// system did not accept, that are repeatable, or that are deletes. The first maybe
// commands are deletes that the server might have executed already.
func (c *Conn) many(ctx context.Context, errs []error, maybe int, tube string, build func(int, *request), done func(int, *wire.Reply)) {
	fail := func(i int, err error) {
		if i < maybe {
			err = unknown(err)
		}
		errs[i] = c.failed(build, i, err)
	}
	var out, q request // scratch for commands and replies
	var retry retrier
	for first := 0; first < len(errs); {
		build(first, &q)
		again := q.Op.Repeatable()
		b := batch{
			n: len(errs) - first,
			append: func(dst []byte, i int) []byte {
				build(first+i, &out)
				return wire.AppendCommand(dst, &out.Command)
			},
			reply: func(i int, r *wire.Reply) error {
				build(first+i, &q)
				if done != nil && (r.Kind == q.want || q.Op == wire.Put && r.Kind == wire.Buried) {
					done(first+i, r)
				}
				if r.Kind == q.want {
					return nil
				}
				err := replyError(r)
				fail(first+i, err)
				if outOfStep(q.Op, err) {
					return err
				}
				return nil
			},
		}
		err := c.ready(ctx, tube, again)
		if err == nil {
			err = c.check(c.stream.pipeline(ctx, &b))
		}
		first += b.answered
		if err == nil {
			return
		}
		if sent := first + b.sent - b.answered; !again && sent > maybe {
			maybe = sent
			for ; q.Op != wire.Delete && first < sent; first++ {
				fail(first, err)
			}
		}
		if b.answered > 0 {
			retry = retrier{} // the batch made progress
		}
		if err = retry.next(ctx, c, err); err != nil {
			for ; first < len(errs); first++ {
				fail(first, err)
			}
		}
	}
}
