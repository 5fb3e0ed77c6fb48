package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/epoll"
)

// loops are those of a server, started with the first listener of sockets.
type loops struct {
	all  []*loop
	next int // the one that gets the next socket
}

// stop makes the loops end their connections, and then themselves.
func (ls *loops) stop(abort bool) {
	for _, l := range ls.all {
		l.post(func(m *mailbox) { m.stop, m.abort = true, abort })
	}
}

// check is Server.Check for the sockets. L1. A socket that is open is at its
// index, and its state says what its poller waits for. L2. A round that is not
// delivered is unsettled.
func (ls *loops) check() error {
	var broken []error
	for _, l := range ls.all {
		open := 0
		for i, s := range l.socks {
			if s == nil {
				continue
			}
			open++
			broken = append(broken, s.Check())
			if s.index != i {
				broken = append(broken, fmt.Errorf("server: L1: socket %d is at index %d", s.index, i))
			}
			if s.State() == conversation.Reading && !s.interest.Has(epoll.Readable) || s.State() == conversation.Writing && !s.interest.Has(epoll.Writable) {
				broken = append(broken, fmt.Errorf("server: L1: a socket that is %v waits for %#x", s.State(), s.interest))
			}
		}
		if open != l.open {
			broken = append(broken, fmt.Errorf("server: L1: %d sockets are open, %d counted", open, l.open))
		}
		if l.syncing > l.unsettled {
			broken = append(broken, fmt.Errorf("server: L2: %d rounds are being synced, of %d", l.syncing, l.unsettled))
		}
	}
	return errors.Join(broken...)
}

// A Socket is what a loop needs of a connection. Its methods do not block; they
// are described at [epoll.Socket], which is the one that is not simulated.
type Socket interface {
	Read(buf []byte) (int, error)
	Write(buf []byte) (int, error)
	Unacknowledged() int
	Close() error
}

// A Poller is what a loop needs to wait for its sockets; see [epoll.Poller].
type Poller interface {
	Add(s Socket, index int, events epoll.Events) error
	Modify(s Socket, index int, events epoll.Events) error
	Wait(timeout time.Duration) []epoll.Event
	Wake()
	Close()
}

// A Network is a listener with a Poller of its own for its connections, which are
// Sockets. That is how loops are simulated. A server has no other listeners then.
type Network interface {
	net.Listener
	NewPoller() (Poller, error)
}

// systemPoller is the Poller for the kernel's sockets.
type systemPoller struct{ *epoll.Poller }

func newSystemPoller() (Poller, error) {
	p, err := epoll.New()
	return systemPoller{p}, err
}

func (p systemPoller) Add(s Socket, index int, events epoll.Events) error {
	return p.Poller.Add(s.(epoll.Socket), index, events)
}

func (p systemPoller) Modify(s Socket, index int, events epoll.Events) error {
	return p.Poller.Modify(s.(epoll.Socket), index, events)
}

// prepare starts the loops, if those whom a listener accepts are for them.
func (s *Server) prepare(l net.Listener) {
	newPoller := newSystemPoller
	switch l := l.(type) {
	case *net.TCPListener, *net.UnixListener:
	case Network:
		newPoller = l.NewPoller
	default:
		return
	}
	if err := s.startLoops(newPoller); err != nil {
		s.log.Warn("no event loops: each connection gets a goroutine", "err", err)
	}
}

// adopt lets a loop serve a new connection, if it is a socket and there are loops,
// or closes it if there are too many. Without a descriptor to spare the connection
// stays what it is.
func (s *Server) adopt(nc net.Conn, g *guard, id *access.Identity) bool {
	if !s.hasLoops() {
		return false
	}
	c := &socket{}
	c.Conversation = conversation.New(&s.shared, c, s.peerName(nc))
	if tcp, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		addr := tcp.AddrPort()
		c.peer = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	}
	if g != nil {
		g.place(&c.Conversation, nc, id)
	}
	var ok bool
	if c.fd, ok = takeSocket(nc); !ok {
		return false
	}
	if err := s.addSocket(c); err != nil {
		c.fd.Close()
		s.reject(err)
		return true
	}
	s.log.Debug("connected", "client", c.Client())
	return true
}

// takeSocket takes the socket away from package net.
func takeSocket(nc net.Conn) (s Socket, ok bool) {
	switch nc := nc.(type) {
	case *net.TCPConn, *net.UnixConn:
		fd, err := epoll.Take(nc)
		return fd, err == nil
	case Socket:
		return nc, true
	}
	return nil, false
}

func (s *Server) hasLoops() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.loops.all) > 0
}

// startLoops starts the loops, unless they run.
func (s *Server) startLoops(newPoller func() (Poller, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.loops.all) > 0 || s.mu.closing {
		return nil
	}
	for range s.opt.Loops {
		l, err := newLoop(s, newPoller)
		if err != nil {
			for _, l := range s.mu.loops.all {
				l.poll.Close()
			}
			s.mu.loops.all = nil
			return err
		}
		s.mu.loops.all = append(s.mu.loops.all, l)
	}
	for _, l := range s.mu.loops.all {
		s.wg.Go(l.run)
	}
	return nil
}

// addSocket gives a socket to the loop whose turn it is.
func (s *Server) addSocket(c *socket) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.room(); err != nil {
		return err
	}
	s.mu.sockets++
	ls := &s.mu.loops
	c.loop = ls.all[ls.next]
	ls.next = (ls.next + 1) % len(ls.all)
	c.loop.post(func(m *mailbox) { m.joined = append(m.joined, c) })
	return nil
}

func (s *Server) removeSocket() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.sockets--
}
