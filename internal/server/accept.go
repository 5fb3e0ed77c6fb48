package server

import (
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/conversation"
)

// Serve serves the clients of a listener until Shutdown, which closes the listener
// and makes Serve return nil. The listener belongs to the server from now on: nobody
// else may accept from it or close it. If somebody closes it all the same, either that
// has no effect, or no more clients come, and Serve returns an error at once or with
// Shutdown.
//
// On Linux a TCP or unix socket, unless it wants TLS, has an event loop accept its
// connections: a client that has connected is known to each command stats that comes
// later. For any other listener Serve accepts in its caller's goroutine.
func (s *Server) Serve(l net.Listener) error { return s.ServeWith(l, ListenOptions{}) }

// ServeWith is Serve for a listener that asks something of its clients.
func (s *Server) ServeWith(l net.Listener, t ListenOptions) error {
	if s.access.Asks() || t.TLS != nil || len(t.Networks) > 0 {
		s.restricted.Store(true)
	}
	if !s.addListener(l) {
		l.Close()
		return nil
	}
	defer s.removeListener(l)
	if s.serveInLoop(l, &t) {
		return nil
	}
	var pause backoff
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause.reset()
			if err := s.waitForSlot(); err != nil {
				nc.Close()
				return nil
			}
			s.accept(nc, &t)
		case s.isClosing():
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			// Out of descriptors, most likely. Connected clients go on; to try
			// again at once would only burn the processor.
			s.cannotAccept(l, pause.next(err))
		}
	}
}

// cannotAccept waits after a failure, or until Shutdown. The first of several is logged.
func (s *Server) cannotAccept(l net.Listener, f failure) {
	if f.first {
		s.log.Warn("cannot accept connections", "listener", l.Addr(), "err", f.err)
	}
	select {
	case <-s.stopped:
	case <-time.After(f.pause):
	}
}

// A failure to accept a connection, and how long to wait before the next try.
type failure struct {
	err   error
	pause time.Duration
	first bool // since the last success
}

// A backoff is a pause that doubles, from 5 ms to 1 s.
type backoff struct{ d time.Duration }

func (b *backoff) reset() { b.d = 0 }

func (b *backoff) next(err error) failure {
	first := b.d == 0
	b.d = min(max(2*b.d, 5*time.Millisecond), time.Second)
	return failure{err, b.d, first}
}

// accept serves a new connection, which has a slot, or closes it if the terms of its
// listener do not let it in.
func (s *Server) accept(nc net.Conn, t *ListenOptions) {
	if !s.begin() {
		nc.Close()
		s.giveSlotBack()
		return
	}
	go func() {
		defer s.wg.Done()
		if err := s.serveNetConn(nc, t); err != nil {
			s.reject(nc.RemoteAddr(), err)
			nc.Close()
		}
	}()
}

// begin reports whether another goroutine may begin to serve. It is to say when it is done.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closing {
		return false
	}
	s.wg.Add(1)
	return true
}

// serveNetConn serves a connection that may stay; else it returns an error.
func (s *Server) serveNetConn(nc net.Conn, t *ListenOptions) error {
	nc, err := s.behindProxy(nc, t)
	if err != nil {
		s.giveSlotBack()
		return err
	}
	e, err := t.letIn(nc.RemoteAddr(), func() access.UnixUser { return PeerUser(nc) })
	if err != nil {
		s.giveSlotBack()
		return err
	}
	c := newNetConn(s, nc, t.TLS)
	if err := s.addNetConn(c, e); err != nil {
		s.giveSlotBack()
		return err
	}
	defer s.removeNetConn(c)
	if encrypted, ok := c.nc.(*tls.Conn); ok {
		if err := handshake(encrypted, &e); err != nil {
			return err
		}
	}
	if s.opt.Member != nil {
		s.serveAtMember(c, t, e)
		return nil
	}
	s.admit(&c.Conversation, t, e)
	c.serve()
	return nil
}

// reject notes that a new connection of a client is closed because of err.
func (s *Server) reject(client net.Addr, err error) {
	if err == access.ErrAddressFull {
		s.crowded.Add(1)
		s.refusals.log.Warn("a connection was refused", "client", client.String(), "reason", err)
		return
	}
	s.refusals.connection(client, err)
}

func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closing {
		return false
	}
	s.mu.listeners[l] = struct{}{}
	return true
}

func (s *Server) removeListener(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.listeners, l)
}

// enter counts one more connection of a client, or tells why it may not come in; with mu locked.
func (s *Server) enter(e access.Evidence) error {
	if s.mu.closing {
		return conversation.ErrStopped
	}
	return s.access.Enter(s.now(), e.Address)
}

// leave forgets a connection of a client that has entered, with mu locked.
func (s *Server) leave(client net.Addr) {
	s.access.Leave(s.now(), AddressOf(client))
	s.freeSlot()
}

func (s *Server) addNetConn(c *netConn, e access.Evidence) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.enter(e); err != nil {
		return err
	}
	s.mu.netConns[c] = struct{}{}
	return nil
}

func (s *Server) removeNetConn(c *netConn) {
	if c.moved {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.netConns, c)
	s.unoccupy(c)
	if c.visitor != nil {
		s.removeVisitor(c.nc.RemoteAddr())
		return
	}
	s.leave(c.nc.RemoteAddr())
}
