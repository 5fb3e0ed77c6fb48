package server

import (
	"errors"
	"fmt"
	"net"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// loops are the event loops of a server. They start with its first listener.
type loops struct {
	all   []*loop
	next  int  // the one that gets the next socket
	polls bool // they poll the kernel's sockets
}

// take returns the loop for the next socket.
func (ls *loops) take() *loop {
	l := ls.all[ls.next]
	ls.next = (ls.next + 1) % len(ls.all)
	return l
}

// stop makes the loops end their connections, and then themselves.
func (ls *loops) stop(abort bool) {
	for _, l := range ls.all {
		l.mail.post(func(m *mailbox) { m.stop, m.abort = true, abort })
	}
}

// dismiss makes the loops end each connection that is older than the nth change of
// leadership.
func (ls *loops) dismiss(reason error, nth uint32) {
	for _, l := range ls.all {
		l.mail.post(func(m *mailbox) { m.everybody, m.before = reason, nth })
	}
}

// accept makes the first loop, if there is one, accept the clients that wait.
func (ls *loops) accept() {
	if len(ls.all) > 0 {
		ls.all[0].mail.post(func(m *mailbox) { m.room = true })
	}
}

// check is Server.Check. L1. An open socket is at its index, and its poller waits for what
// its state needs. L2. Only unsettled rounds are being synced. L3. The timers have open
// sockets, which know their places.
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
			assert(s.timer.index == i+1 && l.clients.all[s.index] == s, "L3: a socket that is %v is at %d of the timers, and thinks at %d", s.State(), i+1, s.timer.index)
		}
		assert(open == l.clients.taken(), "L1: %d sockets are open, %d counted", open, l.clients.taken())
		assert(l.syncing <= l.unsettled, "L2: %d rounds are being synced, of %d", l.syncing, l.unsettled)
	}
	return errors.Join(broken...)
}

// startLoops starts the loops, unless they run. The first listener decides what they poll;
// nil: the kernel's sockets.
func (s *Server) startLoops(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.loops.all) > 0 || s.mu.closing {
		return
	}
	newPoller, polls := newBell, false
	switch l := l.(type) {
	case nil, *net.TCPListener, *net.UnixListener:
		newPoller, polls = newSystemPoller, true
	case Network:
		newPoller = l.NewPoller
	}
	all, err := s.newLoops(newPoller)
	if err != nil {
		s.log.Warn("no event loops: each connection gets goroutines", "err", err)
		all, _ = s.newLoops(newBell)
		polls = false
	}
	first := all[0]
	s.mu.loops = loops{all: all, polls: polls}
	first.first = true
	s.broker.TellMoreDue(first.mail.tellMoreDue)
	if polls {
		s.wg.Go(func() { reserveFiles(s.opt.MaxConns) })
	}
	for _, l := range all {
		s.wg.Go(l.run)
	}
}

func (s *Server) newLoops(newPoller func() (Poller, error)) (all []*loop, err error) {
	for range s.opt.Loops {
		l, err := newLoop(s, newPoller)
		if err != nil {
			for _, l := range all {
				s.departures.unnest(l.poll)
				l.poll.Close()
			}
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// firstLoop returns the first loop; nil if the server has stopped before there was one.
func (s *Server) firstLoop() *loop {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.loops.all) == 0 {
		return nil
	}
	return s.mu.loops.all[0]
}

// pollsKernel reports whether loops poll the kernel's sockets.
func (s *Server) pollsKernel() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.loops.polls
}

// prepare gives a client a conversation, which begins here or at the leader.
func (s *Server) prepare(c *socket, t *ListenOptions, e access.Evidence) {
	c.buffer, _ = c.fd.(buffered)
	c.Conversation = conversation.New(&s.shared, c, s.nameOf(c.client))
	if s.opt.Member != nil {
		c.proxy = &proxy{socket: c, came: s.now()}
	}
	if c.proxied != nil {
		return
	}
	s.admit(&c.Conversation, t, e)
	if s.opt.Member != nil {
		c.proxy.header = s.describe(c, t, e)
	}
}

// assign gives a client a loop, with mu locked: any one if the engine is here. Else the
// client is pending in the first, which also finds out whether a proxied client may begin.
func (s *Server) assign(c *socket) {
	if s.opt.Member == nil || s.mu.lead.Here && c.proxied == nil {
		s.serveHere(c)
		return
	}
	c.loop = s.mu.loops.all[0]
}

// serveHere gives a client a loop for its conversation with the engine, with mu locked.
func (s *Server) serveHere(c *socket) {
	c.proxy, c.here = nil, true
	s.mu.sockets++
	c.loop, c.leads = s.mu.loops.take(), s.mu.leads
}

// handOut gives a client to a loop.
func (s *Server) handOut(c *socket, t *ListenOptions, e access.Evidence) error {
	s.prepare(c, t, e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closing {
		return conversation.ErrStopped
	}
	s.assign(c)
	c.loop.mail.post(func(m *mailbox) { m.entered = append(m.entered, c) })
	return nil
}

// remove forgets a client whose connection is closed.
func (s *Server) remove(c *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.here {
		s.mu.sockets--
	}
	s.access.Leave(AddressOf(c.client), c.proxied != nil)
	if c.proxied != nil {
		s.mu.left.Broadcast()
		return
	}
	s.freeSlot()
}
