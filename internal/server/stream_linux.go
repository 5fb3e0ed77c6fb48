package server

import (
	"slices"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// A streamSocket is a stream as the Socket of a loop. No poller knows it: who has brought bytes posts it to the loop.
type streamSocket struct {
	Stream
	interest epoll.Events // what the loop waits for
	listed   bool         // in loop.arrived
	counts   bool         // what it holds, for the memory of all clients
}

// Read implements Socket.
func (v *streamSocket) Read(b []byte) (int, error) { return v.TryRead(b) }

// Write implements Socket.
func (v *streamSocket) Write(b []byte) (int, error) { return v.TryWrite(b) }

// Unacknowledged implements Socket.
func (v *streamSocket) Unacknowledged() int { return -1 }

// events returns what has happened of what the loop waits for.
func (v *streamSocket) events() (e epoll.Events) {
	readable, writable, ended := v.Ready()
	if readable {
		e |= epoll.Readable
	}
	if writable {
		e |= epoll.Writable
	}
	if ended {
		e |= epoll.HalfClosed
	}
	return e & v.interest
}

// moveToLoop lets a loop drive the conversation of a visitor. It returns false if the connection stays with its goroutine.
func (s *Server) moveToLoop(c *netConn, l *lobby, t *ListenOptions, lead Leadership) (moved bool, err error) {
	stream, ok := c.kernel.Conn.(visitorConn)
	if !ok {
		return false, nil
	}
	v, ok := stream.Conn.(Stream)
	if !ok {
		return false, nil
	}
	k := &socket{fd: &streamSocket{Stream: v}, client: stream.client, visitor: c.visitor}
	k.Conversation = conversation.New(&s.shared, k, s.nameOf(k.client))
	if err := s.letVisitorBegin(&k.Conversation, t, c.visitor, AddressOf(k.client)); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.loops.all) == 0 || s.mu.lead != lead || s.mu.closing {
		return false, nil
	}
	v.PutBack(l.input)
	delete(s.mu.netConns, c)
	s.mu.sockets++
	k.loop, k.leads = s.mu.loops.take(), s.mu.leads
	k.loop.post(func(m *mailbox) { m.entered = append(m.entered, k) })
	return true, nil
}

// take returns the loop for the next socket.
func (ls *loops) take() *loop {
	l := ls.all[ls.next]
	ls.next = (ls.next + 1) % len(ls.all)
	return l
}

// watchStream does for a stream what the poller does for other sockets.
func (l *loop) watchStream(s *socket, v *streamSocket) {
	v.interest = s.interest
	v.Notify(func() {
		if _, _, ended := v.Ready(); ended {
			l.srv.departures.add(s)
		}
		l.mail.Lock()
		defer l.mail.Unlock()
		l.mail.arrived = append(l.mail.arrived, s)
		l.mail.streams.Store(true)
		l.wake()
	})
	l.look(s, v)
}

// look lists a stream if something has happened to it that the loop waits for.
func (l *loop) look(s *socket, v *streamSocket) {
	if !s.gone && !v.interest.Has(epoll.Readable) {
		s.Beside(v.Held()) // which is not read soon
		v.counts = true
	} else if v.counts {
		s.Beside(0)
		v.counts = false
	}
	if !v.listed && !s.gone && v.events() != 0 {
		v.listed = true
		l.arrived = append(l.arrived, s)
	}
}

// serveStreams reads from streams, until the round is full.
func (l *loop) serveStreams() {
	n := 0
	for last := len(l.arrived); n < last && !l.full(); n++ {
		s := l.arrived[n]
		v := s.fd.(*streamSocket)
		if v.listed = false; s.gone {
			continue
		}
		if e := v.events(); e != 0 && s.pass != l.pass {
			l.handle(s, e)
		}
		l.look(s, v)
	}
	l.arrived = slices.Delete(l.arrived, 0, n)
}
