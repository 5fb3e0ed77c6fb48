package server

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/beanpole-mq/beanpole/internal/conversation"
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
	c.Beside(0)
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

// A passage is the buffer for what is passed on of a client, one way. Once it has grown it counts for the memory of all clients.
type passage struct {
	srv     *Server
	c       *netConn
	buf     []byte
	holding conversation.Holding
}

func (s *Server) newPassage(c *netConn) *passage {
	return &passage{srv: s, c: c, buf: make([]byte, relayBuffer)}
}

// grow makes the buffer larger if a read has filled it.
func (p *passage) grow(n int) {
	if n == len(p.buf) && n < maxRelayBuffer {
		p.buf = make([]byte, 4*n)
		p.hold(len(p.buf))
	}
}

// hold tells how many bytes are held; 0: the passage is over.
func (p *passage) hold(n int) {
	if len(p.buf) > relayBuffer {
		p.srv.shared.Memory.Set(&p.holding, p.c, int64(n))
	}
}

// relayInput passes on what the client sends, until it has ended or the connection is to end.
func (s *Server) relayInput(c *netConn, stream net.Conn) {
	p := s.newPassage(c)
	defer p.hold(0)
	for {
		n, err := c.nc.Read(p.buf)
		if n > 0 {
			if _, err := stream.Write(p.buf[:n]); err != nil {
				c.close()
				return
			}
		}
		switch {
		case err == nil:
			p.grow(n)
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
	p := s.newPassage(c)
	defer p.hold(0)
	for {
		n, err := stream.Read(p.buf)
		if n > 0 {
			p.hold(3 * len(p.buf)) // more arrives in the stream if the client does not take it
			if _, err := c.nc.Write(p.buf[:n]); err != nil {
				c.close()
				return
			}
			p.hold(len(p.buf))
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
		p.grow(n)
	}
}

func closeWrite(stream net.Conn) {
	if half, ok := stream.(interface{ CloseWrite() error }); ok {
		half.CloseWrite() // an error is that of a stream that has failed, which reading will tell
	}
}
