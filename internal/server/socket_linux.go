package server

import (
	"net"
	"time"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/epoll"
)

// A socket is a conversation whose input and output a loop does.
type socket struct {
	conversation.Conversation

	// Static after join.
	fd     Socket
	client net.Addr
	loop   *loop
	index  int // in loop.socks

	// Owned by the loop.
	interest  epoll.Events // what the poller waits for
	pass      uint64       // the last in which it was Ready
	resumeAt  int64        // ns; when it may go on
	heapIndex int          // in loop.throttled, or notThrottled
}

// WaitOver implements engine.Waiter: within some turn the wait has ended.
func (s *socket) WaitOver(job engine.Job, outcome engine.Outcome) {
	s.Answer(job, outcome)
	s.loop.srv.broker.Await(s)
}

// Settled implements broker.Settler: the turn that ended the wait is settled.
func (s *socket) Settled(error) {
	s.loop.mail.Lock()
	defer s.loop.mail.Unlock()
	s.loop.mail.answered = append(s.loop.mail.answered, s)
	s.loop.wake()
}

// address implements connected.
func (s *socket) address() string {
	return addressText(s.client)
}

// disconnect implements connected. A socket that is just being accepted reaches its
// loop first.
func (s *socket) disconnect() {
	all := &s.loop.srv.accepting
	all.Lock()
	defer all.Unlock()
	s.loop.post(func(m *mailbox) { m.dismissed = append(m.dismissed, s) })
}

// join makes a new socket, whose session is open, part of the loop.
func (l *loop) join(s *socket) {
	if n := len(l.free); n > 0 {
		s.index = l.free[n-1]
		l.free = l.free[:n-1]
		l.socks[s.index] = s
	} else {
		s.index = len(l.socks)
		l.socks = append(l.socks, s)
	}
	l.open++
	s.interest = epoll.Readable | epoll.HalfClosed
	if err := l.poll.Add(s.fd, s.index, s.interest); err != nil {
		l.end(s, err)
	}
}

// end makes the turn of the batch end the session.
func (l *loop) end(s *socket, reason error) {
	if state := s.State(); state == conversation.Leaving || state == conversation.Closed {
		return
	}
	s.End(l.round.Batch)
	l.srv.disconnected(s.Client(), reason)
}

// remove lets go of a socket whose session has ended.
func (l *loop) remove(s *socket) {
	if l.socks[s.index] != s {
		return // it has two tasks in one round
	}
	s.fd.Close()
	l.unthrottle(s)
	l.socks[s.index] = nil
	l.free = append(l.free, s.index)
	l.open--
	l.srv.removeSocket(s)
}

// sweep ends the connections of clients that make no progress. It looks at all
// of them, but not often: limits are kept to an eighth.
func (l *loop) sweep() {
	if l.now < l.sweepAt {
		return
	}
	every := int64(l.sweepEvery())
	l.sweepAt = l.now + every
	for _, s := range l.socks {
		if s == nil {
			continue
		}
		if s.State() == conversation.Writing {
			s.Unacknowledged(l.now, s.fd.Unacknowledged())
		}
		if at, reason := s.Deadline(); at <= l.sweepAt {
			l.end(s, reason)
		}
	}
}

// sweepEvery returns how often to sweep, or an hour if there is no limit.
func (l *loop) sweepEvery() time.Duration {
	every := time.Hour
	limits := []time.Duration{l.srv.opt.IdleTimeout, l.srv.opt.StallTimeout, 0}
	if l.srv.access.Asks() {
		limits[2] = conversation.AuthTimeout
	}
	for _, limit := range limits {
		if limit > 0 {
			every = min(every, max(limit/8, time.Millisecond))
		}
	}
	return every
}

// untilDue returns how long the loop may wait for events; negative: for ever.
func (l *loop) untilDue() time.Duration {
	if l.open == 0 {
		return -1
	}
	at := l.sweepAt
	if len(l.throttled) > 0 {
		at = min(at, l.throttled[0].resumeAt)
	}
	return time.Duration(max(0, at-l.srv.now()))
}

// dismiss ends the connections of clients that have all their replies. It is for a
// server that stops.
func (l *loop) dismiss() {
	for _, s := range l.socks {
		if s == nil {
			continue
		}
		switch s.State() {
		case conversation.Reading, conversation.Waiting, conversation.Throttled:
			l.end(s, errStopped)
		}
	}
}
