package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

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
// Use [DeleteJobs] for jobs that a [Pool] has reserved.
func (c *commands) DeleteMany(ctx context.Context, ids []uint64) error {
	return c.askMany(ctx, len(ids), func(i int, q *request) { q.Op, q.ID, q.want = wire.Delete, ids[i], wire.Deleted }, nil)
}

// DeleteJobs deletes reserved jobs of a [Conn] or a [Pool], in one round trip per
// connection, or a few if there are thousands. The error is a [BatchError] with the error
// of each failed delete, as [Job.Delete] returns it.
func DeleteJobs(ctx context.Context, jobs []*Job) error {
	byConn := make(map[*Conn][]int) // indexes in jobs
	for i, j := range jobs {
		byConn[j.conn] = append(byConn[j.conn], i)
	}
	errs := make([]error, len(jobs))
	var wg sync.WaitGroup
	for c, places := range byConn {
		wg.Go(func() {
			ids := make([]uint64, len(places))
			for k, i := range places {
				ids[k] = jobs[i].ID
			}
			err := c.DeleteMany(ctx, ids)
			batch, ok := errors.AsType[*BatchError](err)
			for k, i := range places {
				if ok {
					err = batch.Errs[k]
				}
				errs[i] = jobs[i].finish(err)
			}
		})
	}
	wg.Wait()
	return batchError(errs)
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

// An allocator allocates the jobs of a batch, several at a time.
type allocator struct {
	conn *Conn
	left int // maximum number of further jobs
	jobs []Job
	mem  arena
}

const (
	jobsAtOnce  = 64
	bytesAtOnce = 16 << 10 // memory that a single kept job can keep alive
)

func (a *allocator) job(r *wire.Reply) *Job {
	if len(a.jobs) == 0 {
		a.jobs = make([]Job, min(max(a.left, 1), jobsAtOnce))
	}
	job := &a.jobs[0]
	a.jobs = a.jobs[1:]
	job.set(a.conn, r, a.mem.copy(r.Body, a.left))
	a.left--
	return job
}

// An arena provides memory for the bodies of several jobs.
type arena []byte

// copy copies a body. left is the number of bodies to expect, including this one.
func (a *arena) copy(body []byte, left int) []byte {
	if len(body) > bytesAtOnce/4 {
		return append([]byte(nil), body...)
	}
	if len(body) > len(*a) {
		*a = make([]byte, min(bytesAtOnce, max(left, 1)*len(body)))
	}
	n := copy(*a, body)
	body, *a = (*a)[:n:n], (*a)[n:]
	return body
}
