package client

import (
	"bytes"
	"context"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A PeekedJob is a job that was looked at and not reserved. To do something with it, pass
// its id to [Conn.Delete], [Conn.KickJob] or [Conn.ReserveJob].
type PeekedJob struct {
	ID   uint64
	Body []byte
}

// Peek shows a job, whatever its state and tube, and changes nothing.
func (c *commands) Peek(ctx context.Context, id uint64) (PeekedJob, error) {
	return c.peek(ctx, &request{Command: wire.Command{Op: wire.Peek, ID: id}}, nil)
}

// PeekTube shows the first job of a tube that is ready, delayed or buried: the one that
// is next to be reserved, whose delay ends next, or that is next to be kicked. If there
// is none, the error is [ErrNotFound]. If the tube is empty, it is the one that the
// connection uses; with a [Pool] "default". The server creates the tube if it does not
// exist.
func (c *commands) PeekTube(ctx context.Context, tube string, state State) (PeekedJob, error) {
	q := request{Command: wire.Command{Op: wire.PeekReady}}
	err := q.in(tube)
	switch state {
	case StateReady:
	case StateDelayed:
		q.Op = wire.PeekDelayed
	case StateBuried:
		q.Op = wire.PeekBuried
	default:
		err = fmt.Errorf("%w: state %q", ErrInvalid, state)
	}
	return c.peek(ctx, &q, err)
}

func (c *commands) peek(ctx context.Context, q *request, err error) (job PeekedJob, _ error) {
	q.want = wire.Found
	err = c.ask(ctx, q, err, func(r *wire.Reply) error {
		job = PeekedJob{ID: r.ID, Body: bytes.Clone(r.Body)}
		return nil
	})
	return job, err
}

// PeekMany is [Conn.Peek] of many jobs in one round trip, or a few. Jobs come in the
// order of the ids; a job that was not found has the id 0. The error is a [BatchError].
func (c *commands) PeekMany(ctx context.Context, ids []uint64) ([]PeekedJob, error) {
	jobs := make([]PeekedJob, len(ids))
	var bodies arena
	err := c.askMany(ctx, len(ids), func(i int, q *request) { q.Op, q.ID, q.want = wire.Peek, ids[i], wire.Found }, func(i int, r *wire.Reply) {
		jobs[i] = PeekedJob{ID: r.ID, Body: bodies.copy(r.Body, len(ids)-i)}
	})
	return jobs, err
}
