package server

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// relayBuffers are how many bytes of a client are passed on at a time, at first and at most.
const (
	relayBuffer    = 4 << 10
	maxRelayBuffer = 64 << 10
)

// relayLinger is how long a client may take to close its connection after the leader has.
const relayLinger = 5 * time.Second

// relay passes a client's bytes to the leader, and back, until one of them has ended. An error says that nothing
// has reached the leader. The context is done when the leadership changes.
func (s *Server) relay(leading context.Context, c *netConn, l *lobby, lead Leadership) error {
	hello, err := l.visitor.append(nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(leading, leaderWait)
	stream, err := s.opt.Member.Dial(ctx, lead.Leader)
	cancel()
	if err != nil {
		return err
	}
	defer func() {
		if !c.moved {
			stream.Close()
		}
	}()
	if !s.occupy(c, away, lead) {
		return errLeadership
	}
	c.stream.Store(&stream)
	if c.dismissed.Load() != nil {
		return nil
	}
	if _, err := stream.Write(append(hello, l.input...)); err != nil {
		return nil // perhaps some of it has arrived
	}
	l.input = nil
	if c.moved = s.relayInLoop(c, stream, lead); c.moved {
		return nil
	}
	replies := make(chan struct{})
	go func() {
		defer close(replies)
		s.relayReplies(c, stream)
	}()
	s.relayInput(c, stream)
	<-replies
	return nil
}

// relayInput passes on what the client sends, until it has ended or the connection is to end.
func (s *Server) relayInput(c *netConn, stream net.Conn) {
	buf := make([]byte, relayBuffer)
	for {
		n, err := c.nc.Read(buf)
		if n > 0 {
			if _, err := stream.Write(buf[:n]); err != nil {
				c.close()
				return
			}
		}
		switch {
		case err == nil && n == len(buf) && n < maxRelayBuffer:
			buf = make([]byte, 4*n)
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && !c.stopped.Load() && !c.lingers.Load():
			// Somebody has called wake, and there is nothing to heed.
			c.nc.SetReadDeadline(time.Time{})
			if c.stopped.Load() || c.lingers.Load() {
				c.nc.SetReadDeadline(time.Now().Add(relayLinger)) // that came between
			}
		default:
			// The client has ended, or this server: what was sent is answered before.
			closeWrite(stream)
			return
		}
	}
}

// relayReplies passes on what the leader answers. After the last reply the client is given time to close
// its connection. If it does not take the replies, nobody else is to wait for that.
func (s *Server) relayReplies(c *netConn, stream net.Conn) {
	buf := make([]byte, relayBuffer)
	for {
		n, err := stream.Read(buf)
		if n > 0 {
			if _, err := c.nc.Write(buf[:n]); err != nil {
				c.close()
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				c.close()
				return
			}
			c.lingers.Store(true)
			c.closeWrite()
			c.nc.SetReadDeadline(time.Now().Add(relayLinger))
			return
		}
		if n == len(buf) && n < maxRelayBuffer {
			buf = make([]byte, 4*n)
		}
	}
}

func closeWrite(stream net.Conn) {
	if half, ok := stream.(interface{ CloseWrite() error }); ok {
		half.CloseWrite() // an error is that of a stream that has failed, which reading will tell
	}
}
