package server

import (
	"net"

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

// prepare starts the loops, if those whom a listener accepts are for them.
func (s *Server) prepare(l net.Listener) {
	switch l.(type) {
	case *net.TCPListener, *net.UnixListener:
		if err := s.startLoops(); err != nil {
			s.log.Warn("no event loops: each connection gets a goroutine", "err", err)
		}
	}
}

// adopt lets a loop serve a new connection, if it is a socket and there are loops,
// or closes it if there are too many. Without a descriptor to spare the connection
// stays what it is.
func (s *Server) adopt(nc net.Conn) bool {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return false
	}
	if !s.hasLoops() {
		return false
	}
	c := &socket{}
	c.Conversation = conversation.New(&s.shared, c, s.peerName(nc))
	var err error
	if c.fd, err = epoll.Take(nc); err != nil {
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

func (s *Server) hasLoops() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.loops.all) > 0
}

// startLoops starts the loops, unless they run.
func (s *Server) startLoops() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.loops.all) > 0 || s.mu.closing {
		return nil
	}
	for range s.opt.Loops {
		l, err := newLoop(s)
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
