package client

import (
	"context"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// window is how many commands of a batch may be without a reply at a time.
//
// Without a limit both sides could come to wait for ever: we for the server to
// read more commands, it for us to read its replies. The replies to so many
// puts or deletes, about 30 bytes each, fit in the buffers of a socket, so that
// the server is never kept from reading while we write. Reserves have long
// replies, but are so short themselves that we are never kept from writing them.
const window = 1024

// flushAt is how many bytes are collected before they are written.
const flushAt = 64 << 10

// A batch is commands that are sent without waiting for each reply.
type batch struct {
	n    int           // how many
	wait time.Duration // how long the server may delay the replies; see stream.begin

	// append appends command i.
	append func(dst []byte, i int) []byte

	// reply takes the reply to command i, which is valid during the call
	// only. An error ends the batch and the connection.
	reply func(i int, r *wire.Reply) error

	sent     int // commands that the system took as a whole
	answered int // replies that came; in order
	ends     []int
}

// pipeline runs a batch.
func (s *stream) pipeline(ctx context.Context, b *batch) error {
	if err := s.begin(ctx, b.wait); err != nil {
		return err
	}
	return s.end(s.run(b))
}

// run writes up to a window ahead, then reads until half of it is answered, so
// that the server always has something to do.
func (s *stream) run(b *batch) error {
	for b.answered < b.n {
		writing := s.send(b)
		more := b.sent < b.n && writing == nil
		for b.answered < b.sent && (!more || b.sent-b.answered > window/2) {
			var r wire.Reply
			if err := s.read(&r); err != nil {
				return err
			}
			i := b.answered
			b.answered++
			if err := b.reply(i, &r); err != nil {
				return err
			}
		}
		if writing != nil {
			return writing
		}
		if err := s.again(b.wait); err != nil {
			return err
		}
	}
	return nil
}

// send writes the next commands, as many as are allowed.
func (s *stream) send(b *batch) error {
	s.out, b.ends = s.out[:0], b.ends[:0]
	for i := b.sent; i < b.n && i-b.answered < window && len(s.out) < flushAt; i++ {
		s.out = b.append(s.out, i)
		b.ends = append(b.ends, len(s.out))
	}
	if len(b.ends) == 0 {
		return nil
	}
	n, err := s.write()
	for _, end := range b.ends {
		if n >= end {
			b.sent++
		}
	}
	return err
}

// again moves the deadline within an exchange that is getting on.
func (s *stream) again(wait time.Duration) error {
	if err := s.limit(wait); err != nil {
		return lost(err)
	}
	// The deadline may have been set to interrupt us.
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return nil
}
