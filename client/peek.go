package client

import (
	"bytes"
	"context"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Peek returns the body of a job in any state and tube. It changes nothing.
func (c *commands) Peek(ctx context.Context, id uint64) (body []byte, err error) {
	_, body, err = c.peek(ctx, &request{Command: wire.Command{Op: wire.Peek, ID: id}}, nil)
	return body, err
}

// PeekTube returns the id and the body of the next job of a tube to be reserved (ready),
// to become ready (delayed) or to be kicked (buried). If there is none, the error is
// [ErrNotFound]. An empty tube name means "default". The server creates the tube if it
// does not exist.
func (c *commands) PeekTube(ctx context.Context, tube string, state State) (id uint64, body []byte, err error) {
	q := request{Command: wire.Command{Op: wire.PeekReady}}
	err = q.in(tube)
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

func (c *commands) peek(ctx context.Context, q *request, err error) (id uint64, body []byte, _ error) {
	q.want = wire.Found
	err = c.ask(ctx, q, err, func(r *wire.Reply) error {
		id, body = r.ID, bytes.Clone(r.Body)
		return nil
	})
	return id, body, err
}
