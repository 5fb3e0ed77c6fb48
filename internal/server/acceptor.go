package server

import (
	"errors"
	"net"
	"sync"
	"syscall"

	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// The loops accept connections themselves, so that stats counts a client as soon as it
// has connected, as in beanstalkd. The first loop polls the listening sockets with its
// other sockets, and accepts before it serves those. Every loop accepts before a turn in
// which a client requests the number of clients.
//
// accept also opens the sessions, in a separate turn, and holds one lock throughout.
// Therefore, a loop that has held the lock can rely on a session for each client that had
// connected by then. The sockets then go to their loops.

const (
	// maxAccepted is the maximum number of connections that a loop accepts from a
	// listener in a pass, during which the commands of other clients wait.
	maxAccepted = 8

	// maxForStats is the maximum number of connections that a loop accepts before a turn
	// with a stats command.
	maxForStats = 1024
)

// accepting passes new clients to the loops. The lock is held from the accept of a client
// until its loop has it.
type accepting struct {
	sync.Mutex
	from []*acceptor
}

// An acceptor accepts the clients of one listener, in Serve's goroutine or in the loops.
type acceptor struct {
	// Constant while it accepts.
	srv    *Server
	from   net.Listener
	terms  ListenOptions
	first  *loop        // nil if the server has stopped first
	polls  bool         // loops poll the kernel's sockets
	failed chan failure // passes a failure to Serve, which waits and posts the acceptor again

	pause backoff // owned by the goroutine, or guarded like the fields below

	// Guarded by the lock of accepting.
	listening Listening
	paused    bool // after a failure
	watched   bool // by the poller of the first loop
}

// Listening is a listening socket, as used by a loop.
type Listening interface {
	// AcceptSocket accepts a client without blocking. The error is epoll.ErrWouldBlock if
	// no client waits. The loop closes the socket of a client that it refuses.
	AcceptSocket() (Socket, net.Addr, error)

	// Watch makes the poller report waiting clients under the index epoll.Listeners, or
	// stops it.
	Watch(p Poller, on bool) error
}

// A Network is a listener with its own Poller for its connections. Simulations use it. A
// server with a Network has no other listeners.
type Network interface {
	net.Listener // its Accept is not called
	Listening
	NewPoller() (Poller, error)
}

// acceptInLoop makes the loops accept from a listening socket until Shutdown. It returns
// true.
func (a *acceptor) acceptInLoop(from Listening) bool {
	a.listening = from
	for a.first != nil && a.srv.running.Err() == nil {
		a.first.mail.listen(a)
		select {
		case <-a.srv.running.Done():
		case f := <-a.failed:
			a.wait(f)
		}
	}
	return true
}

// begin makes the loops accept from a listener. It is also called to retry after a
// failure.
func (all *accepting) begin(a *acceptor) {
	all.Lock()
	defer all.Unlock()
	if !a.paused {
		all.from = append(all.from, a)
	}
	if a.paused = false; !a.watched {
		a.watch(true)
	}
}

// watch calls Listening.Watch with the poller of the first loop.
func (a *acceptor) watch(on bool) {
	a.watched = on
	if err := a.listening.Watch(a.first.poll, on); err != nil && !errors.Is(err, net.ErrClosed) {
		a.watched = !on
		a.fail(err)
	}
}

// unwatch removes all listeners from the poller of the first loop. Closing them is not
// enough, because a service manager can keep a socket open. The caller holds the lock.
func (all *accepting) unwatch() {
	for _, a := range all.from {
		if a.watched {
			a.watch(false)
		}
	}
}

// fail pauses the acceptor. Serve ends the pause.
func (a *acceptor) fail(err error) {
	if !a.paused {
		a.paused = true
		a.failed <- a.pause.next(err)
	}
}

// accept accepts clients that have connected, at most atMost per listener, and opens
// their sessions.
func (all *accepting) accept(l *loop, atMost int) {
	all.Lock()
	defer all.Unlock()
	var accepted []*socket
	full := false
	for _, a := range all.from {
		if !a.paused && !full {
			accepted, full = a.accept(atMost, accepted)
		}
	}
	for _, a := range all.from {
		if on := !a.paused && !full; l.first && a.watched != on {
			a.watch(on)
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
			c.loop.mail.join(c)
		}
	}
}

// accept appends the sockets of new clients of the listener. full reports whether all
// slots are taken.
func (a *acceptor) accept(atMost int, accepted []*socket) (_ []*socket, full bool) {
	for range atMost {
		if !a.srv.slots.take(a.first) {
			return accepted, true
		}
		fd, client, err := a.listening.AcceptSocket()
		if err == nil {
			a.pause.reset()
			accepted = a.acceptSocket(fd, client, accepted)
			continue
		}
		a.srv.slots.free()
		switch err {
		case syscall.EINTR, syscall.ECONNABORTED:
		case epoll.ErrWouldBlock, net.ErrClosed:
			return accepted, false
		default: // probably out of descriptors; connected clients continue
			a.fail(err)
			return accepted, false
		}
	}
	return accepted, false
}

// acceptSocket appends the socket of a new client if the client is admitted and its
// session is on this member. A client that another member serves goes to its loop at
// once.
func (a *acceptor) acceptSocket(fd Socket, client net.Addr, accepted []*socket) []*socket {
	s, c := a.srv, &socket{fd: fd, client: client}
	e, err := a.letIn(client, c.user)
	if err != nil {
		s.reject(client, err)
		fd.Close()
		s.slots.free()
		return accepted
	}
	a.admit(c, e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.assign(c); c.proxy == nil {
		return append(accepted, c)
	}
	c.loop.mail.enter(c)
	return accepted
}

// openSessions opens the sessions of new sockets in a turn. The loop does not wait until
// the turn is settled, but must request a sync, as for any other turn. A deposed broker
// opens no session and refuses the commands of these clients until Follow disconnects
// them.
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
