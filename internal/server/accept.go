package server

import (
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
)

// Serve serves the clients of a listener until Shutdown, which closes the listener and
// makes Serve return nil. The server owns the listener: the caller must neither accept
// from it nor close it. If the listener is closed anyway, Serve returns an error, no
// later than Shutdown.
//
// On Linux, an event loop accepts the connections of a TCP or Unix socket, so that stats
// counts every client that connected before the command. Serve accepts in its caller's
// goroutine if connections start with a TLS handshake or a proxy header, and from all
// other listeners. The first listener determines the poller of the loops: if it is not a
// kernel socket, loops can wait only for streams.
func (s *Server) Serve(l net.Listener, t ListenOptions) error {
	if !s.addListener(l) {
		l.Close()
		return nil
	}
	defer s.removeListener(l)
	a := &acceptor{srv: s, from: l, terms: t}
	var err error
	if a.first, a.polls, err = s.startLoops(l); err != nil {
		return err
	}
	if a.serveInLoop() {
		return nil
	}
	return a.serve()
}

// serve accepts connections in its caller's goroutine until Shutdown.
func (a *acceptor) serve() error {
	for {
		nc, err := a.from.Accept()
		switch {
		case err == nil:
			if !a.srv.slots.wait() {
				nc.Close()
				return nil
			}
			a.acceptConn(nc)
		case a.srv.running.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			a.warn(err)
			select {
			case <-a.srv.running.Done():
			case <-time.After(acceptPause):
			}
		}
	}
}

// acceptPause is the pause after an error of accepting. Most likely, the process has no
// free file descriptors, and an immediate retry would only waste CPU time.
const acceptPause = 100 * time.Millisecond

// warn logs an error of accepting.
func (a *acceptor) warn(err error) {
	a.srv.accepts.Do(func() {
		a.srv.log.Warn("cannot accept connections", "listener", a.from.Addr(), "err", err)
	})
}

// acceptConn passes an accepted connection to a loop, or closes it if the client is not
// admitted. A proxy header or a TLS handshake takes time, so each of them has its own
// goroutine.
func (a *acceptor) acceptConn(nc net.Conn) {
	s := a.srv
	if !s.begin() {
		nc.Close()
		s.slots.free()
		return
	}
	go func() {
		defer s.wg.Done()
		client, err := a.clientOf(nc)
		if err != nil {
			client = nc.RemoteAddr()
		} else if err = a.receive(nc, client); err == nil {
			return
		}
		if s.running.Err() == nil {
			s.reject(client, err)
		}
		nc.Close()
		s.slots.free()
	}()
}

// receive passes the connection of a client to a loop if the client is admitted.
func (a *acceptor) receive(nc net.Conn, client net.Addr) error {
	e, err := a.admit(client, func() access.UnixUser { return PeerUser(nc) })
	if err != nil {
		return err
	}
	c := &socket{client: client}
	if c.fd, err = a.socketOf(nc, &e); err == nil {
		a.identify(c, e)
		if err = a.srv.handOut(c); err == nil {
			return nil
		}
		c.fd.Close()
	}
	a.srv.access.Leave(e.Address)
	return err
}

// socketOf returns a connection as a Socket, after its TLS handshake, if any.
func (a *acceptor) socketOf(nc net.Conn, e *access.Credentials) (Socket, error) {
	if raw, ok := nc.(syscall.Conn); ok {
		if raw, err := raw.SyscallConn(); err == nil { // a closed connection fails when it is read
			raw.Control(func(fd uintptr) { setDeadAfter(int(fd), a.srv.opt.deadAfter()) })
		}
	}
	var encrypted *tlsSocket
	if a.terms.TLS != nil {
		encrypted = newTLSSocket(nc, a.terms.TLS)
		if err := encrypted.handshake(a.srv.running, e); err != nil {
			return nil, err
		}
	}
	if a.polls {
		fd, err := takeSocket(nc)
		switch {
		case err == nil && encrypted != nil:
			encrypted.begin(fd)
			return encrypted, nil
		case err == nil:
			return fd, nil
		case !errors.Is(err, errors.ErrUnsupported):
			return nil, err
		}
	}
	if encrypted != nil {
		nc = encrypted.conn
	}
	return streamSocket{a.srv.newPump(nc)}, nil
}

// begin reports whether another goroutine can start serving. The goroutine must call
// wg.Done when it ends.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running.Err() != nil {
		return false
	}
	s.wg.Add(1)
	return true
}

func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running.Err() != nil {
		return false
	}
	s.mu.listeners[l] = struct{}{}
	return true
}

func (s *Server) removeListener(l io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.listeners, l)
}
