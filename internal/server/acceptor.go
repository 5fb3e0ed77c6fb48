package server

import (
	"errors"
	"net"
	"sync"
	"syscall"

	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// The loops accept connections themselves, so that clients see one another as they do
// with beanstalkd: stats counts a client as soon as it has connected. The first loop
// waits for the listening sockets together with its other sockets, and accepts before
// it serves those. And each loop accepts before a turn in which a client asks how many
// clients there are.
//
// accept also opens the sessions, in a turn for that alone, and holds one lock for all
// of it. So a loop that has had the lock knows that the engine has a session for each
// client that had connected by then. Then the sockets go to their loops.

const (
	// maxAccepted is how many connections of a listener a loop accepts in a pass: they
	// take as long as the commands of other clients may wait for them.
	maxAccepted = 8

	// maxForStats is how many it accepts before a turn with a command stats.
	maxForStats = 1024
)

// accepting is how clients come to the loops. The lock is held from the accept of a
// client until its loop has it.
type accepting struct {
	sync.Mutex
	from []*acceptor
}

// An acceptor is a listener from which loops accept; the lock of accepting guards it.
type acceptor struct {
	listening Listening
	terms     *ListenOptions
	failed    chan failure // to Serve, which waits and posts the acceptor again
	pause     backoff
	paused    bool // after a failure
	watched   bool // the poller of the first loop reports new connections
}

// Listening is what a loop needs of a socket that listens.
type Listening interface {
	// AcceptSocket accepts a client. It does not block: the error is
	// epoll.ErrWouldBlock when none waits. The socket is closed when the client
	// is refused.
	AcceptSocket() (Socket, net.Addr, error)

	// Watch makes the poller report, or no longer report, under the index
	// epoll.Listeners, that clients wait.
	Watch(p Poller, on bool) error
}

// A Network is a listener with a Poller of its own for its connections. That is how
// loops are simulated. A server has no other listeners then.
type Network interface {
	net.Listener // whose Accept is not called
	Listening
	NewPoller() (Poller, error)
}

// acceptInLoop lets loops accept from a listener until Shutdown.
func (s *Server) acceptInLoop(a *acceptor, l net.Listener) bool {
	first := s.firstLoop()
	for first != nil {
		first.post(func(m *mailbox) { m.acceptors = append(m.acceptors, a) })
		select {
		case <-s.running.Done():
			return true
		case f := <-a.failed:
			s.cannotAccept(l, f)
		}
	}
	return true
}

// beginAccepting begins to accept from a listener, or goes on after a pause.
func (l *loop) beginAccepting(a *acceptor) {
	all := &l.srv.accepting
	all.Lock()
	defer all.Unlock()
	if !a.paused {
		all.from = append(all.from, a)
	}
	if a.paused = false; !a.watched {
		l.watch(a, true)
	}
}

// watch makes the poller of the first loop report, or no longer report, that clients
// wait at a listener.
func (l *loop) watch(a *acceptor, on bool) {
	a.watched = on
	if err := a.listening.Watch(l.poll, on); err != nil && !errors.Is(err, net.ErrClosed) {
		a.watched = !on
		a.fail(err)
	}
}

// unwatch makes the poller of the first loop report no clients any more, with mu and
// accepting locked. It would go on if a listener is closed whose socket a service manager
// keeps open.
func (s *Server) unwatch() {
	for _, a := range s.accepting.from {
		if a.watched {
			s.mu.loops.all[0].watch(a, false)
		}
	}
}

// fail makes Serve wait for a while.
func (a *acceptor) fail(err error) {
	if !a.paused {
		a.paused = true
		a.failed <- a.pause.next(err)
	}
}

// accept accepts clients that have connected, not more than so many of each listener.
// When it returns, their sessions are open.
func (l *loop) accept(atMost int) {
	all := &l.srv.accepting
	all.Lock()
	defer all.Unlock()
	var accepted []*socket
	full := false
	for _, a := range all.from {
		if !a.paused && !full {
			accepted, full = l.acceptFrom(a, atMost, accepted)
		}
	}
	for _, a := range all.from {
		if on := !a.paused && !full; l.first && a.watched != on {
			l.watch(a, on)
		}
	}
	if len(accepted) == 0 {
		return
	}
	l.openSessions(accepted)
	for _, c := range accepted {
		if c.loop == l {
			l.join(c)
		} else {
			c.loop.post(func(m *mailbox) { m.joined = append(m.joined, c) })
		}
	}
}

// acceptFrom accepts clients that wait at a listener, and appends the sockets of those
// that may stay. It reports whether all slots are taken.
func (l *loop) acceptFrom(a *acceptor, atMost int, accepted []*socket) (_ []*socket, full bool) {
	for range atMost {
		if !l.srv.takeSlot() {
			return accepted, true
		}
		fd, client, err := a.listening.AcceptSocket()
		if err == nil {
			a.pause.reset()
			accepted = l.srv.acceptSocket(fd, client, a.terms, accepted)
			continue
		}
		l.srv.giveSlotBack()
		switch err {
		case syscall.EINTR, syscall.ECONNABORTED:
		case epoll.ErrWouldBlock, net.ErrClosed:
			return accepted, false
		default:
			// Out of descriptors, most likely. Connected clients go on; to try
			// again at once would only burn the processor.
			a.fail(err)
			return accepted, false
		}
	}
	return accepted, false
}

// acceptSocket appends the socket of a new client if it may stay. Else it is closed.
func (s *Server) acceptSocket(fd Socket, client net.Addr, t *ListenOptions, accepted []*socket) []*socket {
	switch c, err := s.newSocket(fd, client, t); err {
	case nil:
		if c.proxy == nil {
			return append(accepted, c)
		}
		c.loop.post(func(m *mailbox) { m.entered = append(m.entered, c) })
	case errElsewhere: // another goroutine reads the header of the proxy
		nc, err := acceptElsewhere(fd, client)
		if err != nil {
			s.giveSlotBack()
			break
		}
		s.accept(nc, t)
	default:
		s.reject(client, err)
		fd.Close()
		s.giveSlotBack()
	}
	return accepted
}

// newSocket gives a new client a conversation and a loop, if it may come in.
func (s *Server) newSocket(fd Socket, client net.Addr, t *ListenOptions) (*socket, error) {
	if t.IsProxy(AddressOf(client)) {
		return nil, errElsewhere
	}
	c := &socket{fd: fd, client: client}
	e, err := t.letIn(client, c.user)
	if err == nil {
		err = s.access.Enter(s.now(), e.Address)
	}
	if err != nil {
		return nil, err
	}
	s.prepare(c, t, e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assign(c)
	return c, nil
}

// openSessions opens the sessions of new sockets, in a turn. Nothing waits for that to
// be settled, except that the loop has to see to a sync, like for any other turn.
func (l *loop) openSessions(sockets []*socket) {
	now := l.srv.now()
	for _, c := range sockets {
		l.srv.log.Debug("connected", "client", c.Client())
		c.Open(l.opening, now)
	}
	r := l.newRound() // without tasks
	if settled, _ := l.opener.Start(r); settled {
		l.unused = append(l.unused, r)
	} else {
		l.unsettled++
	}
	l.opening.TurnOver()
	l.opening.Settle(nil)
	l.opening.Reset()
}
