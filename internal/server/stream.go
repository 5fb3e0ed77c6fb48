package server

import (
	"time"

	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// A Stream is a connection that a loop can drive without a poller: a stream of package
// mux, which documents the methods, or a pump.
type Stream interface {
	TryRead(b []byte) (int, error)
	TryWrite(b []byte) (int, error)
	CloseWrite() error
	Close() error
	Unread() int
	Held() int
	Ready() (readable, writable, ended bool)
	Notify(f func())
}

// A MemberStream is the stream of a client between two members of a cluster: a stream of
// package mux, which documents the methods. Read waits for input, unlike TryRead.
type MemberStream interface {
	Stream
	Read(b []byte) (int, error)
	Mark(position uint64, note, state []byte)
	LastMark() (note, state []byte, at time.Time, ok bool)
	Used() uint64
	Lose()
}

// A streamSocket adapts a Stream to a Socket.
type streamSocket struct{ Stream }

// Read implements Socket.
func (v streamSocket) Read(b []byte) (int, error) { return v.TryRead(b) }

// Write implements Socket.
func (v streamSocket) Write(b []byte) (int, error) { return v.TryWrite(b) }

// Unacknowledged implements Socket.
func (v streamSocket) Unacknowledged() int {
	if p, ok := v.Stream.(*pump); ok {
		return p.unwritten()
	}
	return -1
}

// A buffered is a Socket that can be ready without an event of the poller. Its methods
// are those of a Stream.
type buffered interface {
	Ready() (readable, writable, ended bool)
	Held() int
}

// readiness returns the awaited events that the poller cannot report.
func (s *socket) readiness() (e epoll.Events) {
	if s.buffer == nil {
		return 0
	}
	readable, writable, ended := s.buffer.Ready()
	if readable {
		e |= epoll.Readable
	}
	if writable {
		e |= epoll.Writable
	}
	if ended {
		e |= epoll.HalfClosed
	}
	return e & s.interest
}

// notify makes a stream pass its socket to the loop when the stream has events.
// endIsHangup reports whether the end of the stream means that the client has
// disconnected.
func (l *loop) notify(s *socket, v Stream, endIsHangup bool) {
	v.Notify(func() {
		if _, _, ended := v.Ready(); ended && endIsHangup {
			l.srv.hangups.add(s)
		}
		l.inbox.arrive(s)
	})
}

// checkBuffer accounts for the memory of a buffered socket, and makes the socket runnable
// if it has events.
func (l *loop) checkBuffer(s *socket) {
	if s.buffer == nil || s.closing {
		return
	}
	if p, held := s.proxy, 0; p != nil && p.stream == nil {
		l.srv.shared.Memory.Set(&p.holding, s, int64(s.buffer.Held()))
	} else if p == nil {
		if !s.interest.Has(epoll.Readable) { // the socket will not be read soon
			held = s.buffer.Held()
		}
		if held > 0 || s.counts {
			s.Alongside(held)
			s.counts = held > 0
		}
	}
	if s.readiness() != 0 {
		l.list(s)
	}
}
