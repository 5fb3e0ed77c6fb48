package server

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// The loops accept connections themselves, so that stats counts a client as soon as it
// has connected, as in beanstalkd. The first loop polls the listening sockets with its
// other sockets, and accepts before it serves those. Every loop accepts before a turn
// with a command that returns the number of clients.
//
// An accepted client is on its way to its loop, which opens the session in a turn. A turn
// that counts clients first opens the sessions of all clients that are on their way. No
// lock is held across a turn.

const (
	// maxAccepted is the maximum number of connections that a loop accepts from a
	// listener in an iteration; the commands of other clients wait during that time.
	maxAccepted = 8

	// maxForStats is the maximum number of connections that a loop accepts before a turn
	// with a stats command.
	maxForStats = 1024
)

// acceptors are the listeners from which the loops accept. The lock is held during
// accepts.
type acceptors struct {
	sync.Mutex
	from []*acceptor
}

// An acceptor accepts the clients of one listener, in Serve's goroutine or in the loops.
type acceptor struct {
	// Constant while it accepts.
	srv   *Server
	from  net.Listener
	terms ListenOptions
	first *loop // nil if the server was stopped first
	polls bool  // loops poll the kernel's sockets

	// Guarded by the lock of acceptors.
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

// acceptInLoop makes the loops accept from a listening socket, and returns at Shutdown.
// It returns true.
func (a *acceptor) acceptInLoop(from Listening) bool {
	a.listening = from
	if a.first != nil {
		a.srv.acceptors.Lock()
		a.srv.acceptors.from = append(a.srv.acceptors.from, a)
		a.srv.acceptors.Unlock()
		a.first.inbox.acceptClients()
	}
	<-a.srv.running.Done()
	return true
}

// resume ends a pause.
func (a *acceptor) resume() {
	a.srv.acceptors.Lock()
	a.paused = false
	a.srv.acceptors.Unlock()
	a.first.inbox.acceptClients()
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
func (all *acceptors) unwatch() {
	for _, a := range all.from {
		if a.watched {
			a.watch(false)
		}
	}
}

// fail logs a failure and pauses the acceptor.
func (a *acceptor) fail(err error) {
	if !a.paused {
		a.paused = true
		a.warn(err)
		time.AfterFunc(acceptPause, a.resume)
	}
}

// accept accepts clients that have connected, at most atMost per listener.
func (all *acceptors) accept(l *loop, atMost int) {
	all.Lock()
	defer all.Unlock()
	full := false
	for _, a := range all.from {
		if !a.paused && !full {
			full = a.accept(atMost)
		}
	}
	for _, a := range all.from {
		if on := !a.paused && !full; l.first && a.watched != on {
			a.watch(on)
		}
	}
}

// accept accepts new clients of the listener. full reports whether all slots are taken.
func (a *acceptor) accept(atMost int) (full bool) {
	for range atMost {
		if !a.srv.slots.take(a.first) {
			return true
		}
		fd, client, err := a.listening.AcceptSocket()
		if err == nil {
			a.acceptSocket(fd, client)
			continue
		}
		a.srv.slots.free()
		switch err {
		case syscall.EINTR, syscall.ECONNABORTED:
		case epoll.ErrWouldBlock, net.ErrClosed:
			return false
		default: // the process probably has no free descriptors; connected clients continue
			a.fail(err)
			return false
		}
	}
	return false
}

// acceptSocket passes the socket of a new client to its loop if the client is admitted.
func (a *acceptor) acceptSocket(fd Socket, client net.Addr) {
	s, c := a.srv, &socket{fd: fd, client: client}
	e, err := a.admit(client, c.user)
	if err == nil {
		a.identify(c, e)
		if err = s.handOut(c); err == nil {
			return
		}
		s.access.Leave(e.Address)
	}
	s.reject(client, err)
	fd.Close()
	s.slots.free()
}
