package server

import (
	"cmp"
	"math"
	"net"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// A socket is a conversation whose input and output a loop does.
type socket struct {
	conversation.Conversation

	// Static after join.
	fd      Socket
	client  net.Addr
	visitor *visitor // whose client it is; nil: this server's
	loop    *loop
	index   int    // in loop.socks
	leads   uint32 // Server.mu.leads when it came

	watched int  // from 1, in departures.watched; 0: not there. Its lock guards these
	left    bool // in departures.left

	waitErr error // what Settled was told; set before the loop is told

	// Owned by the loop.
	interest epoll.Events // what the poller waits for
	pass     uint64       // the last in which it was Ready
	putOff   bool         // in loop.putOff
	gone     bool         // it is to be closed
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

// visits implements connected.
func (s *socket) visits() *visitor { return s.visitor }

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
	s.index = l.socks.add(s)
	s.interest = epoll.Readable | epoll.HalfClosed
	if v, ok := s.fd.(*streamSocket); ok {
		l.watchStream(s, v)
	} else if err := cmp.Or(l.poll.Add(s.fd, s.index, s.interest), l.srv.departures.watch(s)); err != nil {
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
	if s.gone {
		return // it has two tasks in one round, or its poller has reported something since
	}
	s.gone = true
	l.timers.remove(s)
	l.gone = append(l.gone, s)
}

// closeSome closes sockets that are gone, not many at a time. Until then they count as
// connections.
func (l *loop) closeSome() {
	n := min(len(l.gone), closesPerRound)
	for _, s := range l.gone[:n] {
		s.fd.Close()
		l.socks.remove(s.index)
		l.srv.departures.forget(s)
		l.srv.removeSocket(s)
		l.srv.disconnected(s.Client(), s.Reason())
	}
	l.gone = slices.Delete(l.gone, 0, n)
}

// stop ends the connections: at once, or as soon as the clients have all their replies.
func (l *loop) stop(atOnce bool) {
	if atOnce {
		l.endAll(errAborted, math.MaxUint32)
		return
	}
	for _, s := range l.socks.all {
		if s != nil {
			s.Stop(l.round.Batch)
		}
	}
}

// endAll ends all connections at once that came before the leadership changed for the nth time.
func (l *loop) endAll(reason error, nth uint32) {
	for _, s := range l.socks.all {
		if s != nil && s.leads < nth {
			l.end(s, reason)
		}
	}
}
