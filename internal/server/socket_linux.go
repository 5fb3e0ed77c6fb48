package server

import (
	"net"

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

	waitErr error // what Settled was told; set before the loop has the letter

	// Owned by the loop.
	interest epoll.Events // what the poller waits for
	pass     uint64       // the last in which it was Ready
	timer    timer
}

// Unacknowledged implements conversation.Owner.
func (s *socket) Unacknowledged() int { return s.fd.Unacknowledged() }

// WaitOver implements engine.Waiter: within some turn the wait has ended.
func (s *socket) WaitOver(job engine.Job, outcome engine.Outcome) {
	s.Answer(job, outcome)
	s.loop.srv.broker.Await(s)
}

// Settled implements broker.Settler: the turn that ended the wait is settled.
func (s *socket) Settled(err error) {
	s.loop.mail.Lock()
	defer s.loop.mail.Unlock()
	s.waitErr = err
	s.loop.mail.answered = append(s.loop.mail.answered, s)
	s.loop.wake()
}

// address implements connected.
func (s *socket) address() string {
	return addressText(s.client)
}

// Dismiss implements conversation.Owner. A socket that is just being accepted reaches its
// loop first.
func (s *socket) Dismiss(reason error) {
	all := &s.loop.srv.accepting
	all.Lock()
	defer all.Unlock()
	s.loop.post(func(m *mailbox) { m.dismissed = append(m.dismissed, dismissal{s, reason}) })
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
		return
	}
	if l.stopping {
		s.Stop(l.round.Batch)
	}
	l.timers.set(s, s.Next())
}

// end ends a connection that has failed, or must go at once.
func (l *loop) end(s *socket, reason error) {
	if s.End(l.round.Batch, reason); s.State() == conversation.Closed {
		l.remove(s)
	}
}

// remove lets go of a socket whose conversation is over.
func (l *loop) remove(s *socket) {
	if l.socks[s.index] != s {
		return // it has two tasks in one round
	}
	s.fd.Close()
	l.timers.remove(s)
	l.socks[s.index] = nil
	l.free = append(l.free, s.index)
	l.open--
	l.srv.removeSocket(s)
	l.srv.disconnected(s.Client(), s.Reason())
}

// stop ends the connections: at once, or as soon as the clients have all their replies.
func (l *loop) stop(atOnce bool) {
	if l.first {
		l.accept(0) // which closes those that wait for a place
	}
	if atOnce {
		l.endAll(errAborted)
		return
	}
	for _, s := range l.socks {
		if s != nil {
			s.Stop(l.round.Batch)
		}
	}
}

// endAll ends all connections at once.
func (l *loop) endAll(reason error) {
	for _, s := range l.socks {
		if s != nil {
			l.end(s, reason)
		}
	}
}
