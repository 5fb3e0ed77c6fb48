package client

import (
	"context"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	// flushAt is the number of bytes that are buffered before a write.
	flushAt = 64 << 10

	// maxInFlight is the maximum number of commands that are written before the first
	// reply is read. For a larger batch, two goroutines write and read: otherwise the
	// client could wait for the server to read commands, and the server for the client to
	// read replies. This many short replies fit into the buffers of any socket, even if
	// each counts as a kilobyte, as on Linux. Commands with long replies are short enough
	// that this many fit.
	maxInFlight = 128

	// drainTime is the time for which replies are read after a write has failed.
	drainTime = time.Second
)

// A batch is a sequence of commands that are sent without waiting for each reply.
type batch struct {
	n    int           // number of commands
	wait time.Duration // time that the server can delay the replies; see stream.begin

	// append appends command i. It can run concurrently with reply.
	append func(dst []byte, i int) []byte

	// reply handles the reply to command i, which is valid only during the call. An error
	// ends the batch and the connection.
	reply func(i int, r *wire.Reply) error

	sent     int // commands that the system accepted completely
	answered int // number of received replies
}

// pipeline runs a batch.
func (s *stream) pipeline(ctx context.Context, b *batch) error {
	if err := s.begin(ctx, b.wait); err != nil {
		return err
	}
	if b.n > maxInFlight {
		return s.end(s.writeAndRead(b))
	}
	writing := s.writeAll(b)
	reading := s.readAll(b, b.sent) // even after an error, because answered commands were executed
	if writing != nil {
		return s.end(writing)
	}
	return s.end(reading)
}

// writeAndRead writes and reads at the same time.
func (s *stream) writeAndRead(b *batch) error {
	written := make(chan error, 1)
	go func() {
		err := s.writeAll(b)
		if err != nil {
			// The server has executed the commands that it answered, so read the replies
			// that have arrived, but do not wait for more.
			s.nc.SetReadDeadline(time.Now().Add(drainTime))
		}
		written <- err
	}()
	reading := s.readAll(b, b.n)
	if reading != nil {
		s.nc.Close()
	}
	writing := <-written
	if reading != nil {
		return reading
	}
	return writing
}

// writeAll writes the commands of a batch.
func (s *stream) writeAll(b *batch) error {
	var ends [maxInFlight]int
	for b.sent < b.n {
		s.out = s.out[:0]
		n := 0
		for n < len(ends) && b.sent+n < b.n && len(s.out) < flushAt {
			s.out = b.append(s.out, b.sent+n)
			ends[n] = len(s.out)
			n++
		}
		taken, err := s.write()
		for _, end := range ends[:n] {
			if taken >= end {
				b.sent++
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readAll reads n replies.
func (s *stream) readAll(b *batch, n int) error {
	for b.answered < n {
		if err := s.read(&s.reply); err != nil {
			return err
		}
		i := b.answered
		b.answered++
		if err := b.reply(i, &s.reply); err != nil {
			return err
		}
		if b.answered%maxInFlight == 0 {
			if err := s.extendDeadline(b.wait); err != nil {
				return err
			}
		}
	}
	return nil
}

// extendDeadline moves the deadline of an exchange that made progress.
func (s *stream) extendDeadline(wait time.Duration) error {
	if err := s.setDeadline(wait); err != nil {
		return lost(err)
	}
	// interrupt might have set the deadline.
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return nil
}
