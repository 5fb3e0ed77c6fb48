package client

import (
	"bytes"
	"context"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A PeekedJob is a job that was looked at and not reserved. To do something with it, pass
// its id to [Conn.Delete], [Conn.KickJob] or [Conn.ReserveJob].
type PeekedJob struct {
	ID   uint64
	Body []byte
}

// Peek shows a job, whatever its state and tube, and changes nothing.
func (c *Conn) Peek(ctx context.Context, id uint64) (PeekedJob, error) {
	return c.peek(ctx, &request{Command: wire.Command{Op: wire.Peek, ID: id}})
}

// PeekReady shows the job of the tube in use that is next to be reserved, or
// [ErrNotFound].
func (c *Conn) PeekReady(ctx context.Context) (PeekedJob, error) {
	return c.peekUsed(ctx, wire.PeekReady)
}

// PeekDelayed shows the job of the tube in use whose delay ends next, or
// [ErrNotFound].
func (c *Conn) PeekDelayed(ctx context.Context) (PeekedJob, error) {
	return c.peekUsed(ctx, wire.PeekDelayed)
}

// PeekBuried shows the job of the tube in use that is next to be kicked, or
// [ErrNotFound].
func (c *Conn) PeekBuried(ctx context.Context) (PeekedJob, error) {
	return c.peekUsed(ctx, wire.PeekBuried)
}

// peekUsed looks at a job of the tube in use.
func (c *Conn) peekUsed(ctx context.Context, op wire.Op) (PeekedJob, error) {
	return c.peek(ctx, &request{Command: wire.Command{Op: op}, tube: usedTube})
}

func (c *Conn) peek(ctx context.Context, q *request) (job PeekedJob, err error) {
	q.want = wire.Found
	err = c.hold(ctx, q, nil, func(r *wire.Reply) error {
		job = PeekedJob{ID: r.ID, Body: bytes.Clone(r.Body)}
		return nil
	})
	return job, err
}

// PeekMany is [Conn.Peek] of many jobs in one round trip, or a few. Jobs come in
// the order of the ids; a job that was not found has the id 0. The error is a [BatchError].
func (c *Conn) PeekMany(ctx context.Context, ids []uint64) ([]PeekedJob, error) {
	jobs := make([]PeekedJob, len(ids))
	var bodies arena
	err := c.manyByID(ctx, ids, wire.Peek, wire.Found, func(i int, r *wire.Reply) {
		jobs[i] = PeekedJob{ID: r.ID, Body: bodies.copy(r.Body, len(ids)-i)}
	})
	return jobs, err
}
