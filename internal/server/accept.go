package server

import (
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/wire"
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

// accept serves a new connection, or closes it if there are too many or the terms of its
// listener do not let it in.
func (s *Server) accept(nc net.Conn, t *ListenOptions) {
	if !s.begin() {
		nc.Close()
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
		return err
	}
	e, err := t.letIn(nc.RemoteAddr(), func() access.UnixUser { return PeerUser(nc) })
	if err != nil {
		return err
	}
	c := newNetConn(s, nc, t.TLS)
	if err := s.waitForPlace(c, e); err != nil {
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
	switch {
	case err == access.ErrAddressFull:
		s.crowded.Add(1)
		s.refusals.log.Warn("a connection was refused", "client", client.String(), "reason", err)
	case err != errFull:
		s.refusals.connection(client, err)
	default:
		s.rejected.Add(1)
		s.fullWarning.Do(func() {
			s.log.Warn("too many connections: new ones are closed", "limit", s.opt.MaxConns, "reserved", s.reserved())
		})
	}
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

var errFull = errors.New("too many connections")

// maxReserved is how many connections are kept at most for those who look after the server.
const maxReserved = 5

// reserved returns how many of the connections are kept for those who look after the server;
// none if there are few.
func (s *Server) reserved() int { return min(maxReserved, s.opt.MaxConns/10) }

// connections returns how many there are, with mu locked.
func (s *Server) connections() int {
	return len(s.mu.netConns) - s.mu.visitors + s.mu.sockets + s.mu.relayed + s.mu.headless
}

// full reports whether there are as many connections as clients may have that do not look
// after the server, with mu locked.
func (s *Server) full() bool { return s.connections() >= s.opt.MaxConns-s.reserved() }

// enter counts one more connection of a client, or tells why there is no room for it;
// with mu locked. Who may have a connection that is kept must show that now, for whoever
// says it later would keep one until then.
func (s *Server) enter(e access.Evidence) error {
	switch {
	case s.mu.closing:
		return conversation.ErrStopped
	case s.connections() >= s.opt.MaxConns, s.full() && !s.access.LooksAfter(e, wire.Stats.Need()):
		return errFull
	}
	return s.access.Enter(s.now(), e.Address)
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
	s.leave(c)
	if c.visitor != nil {
		s.removeVisitor(c.nc.RemoteAddr())
		return
	}
	s.access.Leave(s.now(), AddressOf(c.nc.RemoteAddr()))
	s.vacancies.announce()
}
