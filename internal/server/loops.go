package server

import (
	"errors"
	"fmt"
	"net"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// loops are the event loops of a server. They start with its first listener.
type loops struct {
	all   []*loop
	next  int  // index of the loop for the next socket
	polls bool // the loops poll kernel sockets
}

// take returns the loop for the next socket.
func (ls *loops) take() *loop {
	l := ls.all[ls.next]
	ls.next = (ls.next + 1) % len(ls.all)
	return l
}

// check implements Server.Check. It tests these invariants. L1: An open socket is at its
// index, and its poller waits for the events that its state requires. L2: Only unsettled
// batches are being synced. L3: The timers contain only open sockets, which store their
// positions.
func (ls *loops) check() error {
	var broken []error
	assert := func(ok bool, format string, args ...any) {
		if !ok {
			broken = append(broken, fmt.Errorf("server: "+format, args...))
		}
	}
	for _, l := range ls.all {
		open := 0
		for i, s := range l.clients.all {
			if s != nil {
				open++
			}
			if s == nil || s.proxy != nil {
				continue
			}
			broken = append(broken, s.Check())
			assert(s.index == i, "L1: socket %d is at index %d", s.index, i)
			assert(s.State() != conversation.Reading || s.interest.Has(epoll.Readable), "L1: a reading socket waits for %#x", s.interest)
			assert(s.State() != conversation.Writing || s.interest.Has(epoll.Writable), "L1: a writing socket waits for %#x", s.interest)
		}
		for i, s := range l.timers {
			assert(s.timer.index == i+1 && l.clients.all[s.index] == s, "L3: a socket that is %v is timer %d, but has the index %d", s.State(), i+1, s.timer.index)
		}
		assert(open == l.clients.taken(), "L1: %d sockets are open, %d counted", open, l.clients.taken())
		assert(l.syncing <= l.unsettled, "L2: %d batches are being synced, of %d", l.syncing, l.unsettled)
	}
	return errors.Join(broken...)
}

// startLoops starts the loops, unless they are running or the server has stopped.
func (s *Server) startLoops(l net.Listener) (first *loop, polls bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ls := &s.mu.loops
	if len(ls.all) > 0 {
		return ls.all[0], ls.polls, nil
	}
	if s.running.Err() != nil {
		return nil, false, nil
	}
	newPoller := newWakeup
	switch l := l.(type) {
	case nil, *net.TCPListener, *net.UnixListener:
		newPoller, polls = newSystemPoller, true
	case Network:
		newPoller = l.NewPoller
	}
	var all []*loop
	for range s.opt.Loops {
		l, err := newLoop(s, newPoller)
		if err != nil {
			return nil, false, err
		}
		all = append(all, l)
	}
	ls.all, ls.polls, first = all, polls, all[0]
	first.first = true
	s.broker.OnMoreDue(first.inbox.deferDue)
	for _, l := range ls.all {
		s.wg.Go(l.run)
	}
	return first, polls, nil
}

// prepare creates the conversation of a client, unless the leader serves the client.
func (s *Server) prepare(c *socket) {
	c.srv = s
	c.buffer, _ = c.fd.(buffered)
	c.Conversation = conversation.New(&s.shared, c, s.nameOf(c.client))
	if s.opt.Cluster != nil {
		c.proxy = &proxy{socket: c, came: s.now()}
		c.origin = c.proxy
	}
}

// assign assigns a client to a loop. If the engine is on this member, any loop can serve
// the client. Otherwise the client is pending in the first loop, which also checks
// whether a proxied client can start. The caller holds mu.
func (s *Server) assign(c *socket) {
	if s.opt.Cluster == nil || s.mu.lead.here() && !s.mu.gathering && c.proxied == nil {
		s.serveHere(c)
		return
	}
	c.loop = s.mu.loops.all[0]
}

// serveHere assigns a client with a local conversation to a loop. The caller holds mu.
func (s *Server) serveHere(c *socket) {
	if c.proxied != nil {
		c.origin = nil
	}
	if c.proxy, c.here = nil, true; s.opt.Cluster != nil {
		c.term = s.mu.lead.Term
		c.Keep()
	}
	s.mu.sockets++
	c.loop, c.leads = s.mu.loops.take(), s.mu.leads
}

// notifyLoops makes the loops end the connections that the last change of leadership
// ends, and all connections when the server stops. While clients are being resumed, they
// might not be in their loops yet, so resume calls notifyLoops again. The caller holds
// mu.
func (s *Server) notifyLoops() {
	if s.mu.resuming {
		return
	}
	for _, l := range s.mu.loops.all {
		l.inbox.end(ending{s.mu.leads, s.running.Err() != nil, s.aborting.Err() != nil})
	}
}

// enter passes a client to its loop, which opens its session if the client is served
// here. The caller holds mu.
func (s *Server) enter(c *socket) {
	if c.entering = c.proxy == nil; c.entering {
		c.Open(s.now())
		s.mu.entering = append(s.mu.entering, c)
	}
	c.loop.inbox.enter(c)
}

// openSessions opens the sessions of all clients that are on their way to their loops. It
// is called within a turn.
func (s *Server) openSessions(e *engine.Engine, now int64) (later int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.mu.entering {
		if c.entering {
			c.OpenSession(e)
			now++
		}
	}
	s.mu.entering = nil
	return now - 1
}

// handOut passes a client to its loop.
func (s *Server) handOut(c *socket) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running.Err() != nil {
		return conversation.ErrStopped
	}
	s.assign(c)
	s.enter(c)
	return nil
}

// remove removes a client whose connection is closed.
func (s *Server) remove(c *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.proxied == nil { // the member to which a proxied client is connected counts it
		s.access.Leave(AddressOf(c.client))
	}
	if c.here {
		s.mu.sockets--
		s.mu.left.Broadcast()
	}
	if c.proxied == nil {
		s.slots.free()
	}
}
