package server

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// serveInLoop serves the listener until Shutdown if loops can accept from it. Otherwise
// it returns false at once: a connection that starts with a handshake or a proxy header
// needs a goroutine.
func (a *acceptor) serveInLoop() bool {
	_, overTCP := a.from.(*net.TCPListener)
	switch l := a.from.(type) {
	case *net.TCPListener, *net.UnixListener:
		if a.terms.TLS != nil || overTCP && len(a.terms.Proxies) > 0 || !a.polls {
			return false
		}
		own, err := a.srv.takeListener(l)
		if err != nil {
			return false
		}
		defer a.srv.removeListener(own)
		return a.acceptInLoop(own)
	case Network:
		return a.acceptInLoop(l)
	}
	return false
}

// takeListener takes the socket of a listener. It closes a TCP listener: if the Go
// runtime also polled the socket, each new client would wake two threads. A Unix listener
// stays open, because its Close removes the socket's file.
func (s *Server) takeListener(l net.Listener) (*listeningSocket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running.Err() != nil {
		return nil, conversation.ErrStopped
	}
	fd, err := epoll.Dup(l.(syscall.Conn))
	if err != nil {
		return nil, err
	}
	if _, ok := l.(*net.TCPListener); ok {
		l.Close()
	}
	own := newListeningSocket(fd, s.opt.deadAfter())
	s.mu.listeners[own] = struct{}{}
	return own, nil
}

// A listeningSocket is a listening socket of the kernel. The lock of accepting guards it.
type listeningSocket struct {
	fd        epoll.Socket
	deadAfter time.Duration
	closed    bool
	inherits  bool // clients that connected before the socket had its options have all been accepted
}

func newListeningSocket(fd epoll.Socket, deadAfter time.Duration) *listeningSocket {
	unix.SetNonblock(int(fd), true) // a service manager can pass a blocking socket
	setOptions(fd)
	return &listeningSocket{fd: fd, deadAfter: deadAfter}
}

// Close implements io.Closer. A second Close must not close another file that has the
// same number by then.
func (s *listeningSocket) Close() error {
	if s.closed {
		return net.ErrClosed
	}
	s.closed = true
	return s.fd.Close()
}

// AcceptSocket implements Listening.
func (s *listeningSocket) AcceptSocket() (Socket, net.Addr, error) {
	if s.closed {
		return nil, nil, net.ErrClosed
	}
	fd, client, err := s.fd.Accept()
	if err != nil {
		s.inherits = s.inherits || err == epoll.ErrWouldBlock
		return nil, nil, err
	}
	if !client.IsValid() {
		return fd, unnamed, nil
	}
	if !s.inherits {
		setOptions(fd)
	}
	setDeadAfter(int(fd), s.deadAfter) // a connection does not inherit this
	return fd, net.TCPAddrFromAddrPort(client), nil
}

// unnamed is the address that package net assigns to the client of a Unix socket.
var unnamed net.Addr = &net.UnixAddr{Net: "unix", Name: "@"}

// Watch implements Listening.
func (s *listeningSocket) Watch(p Poller, on bool) error {
	switch {
	case s.closed:
		return net.ErrClosed
	case !on:
		return p.Remove(s.fd)
	}
	return p.Add(s.fd, epoll.Listeners, epoll.Readable)
}

// setOptions sets the options that package net would set for a TCP connection: no delay
// for small replies, and keepAlive probes. It ignores the errors of a Unix socket and of
// a closed connection.
//
// On Linux, a connection inherits the options of its listening socket. Only connections
// that were opened before those were set need the options themselves.
func setOptions(fd epoll.Socket) {
	for _, o := range []struct{ level, name, value int }{
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int(keepAlive.Idle.Seconds())},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, int(keepAlive.Interval.Seconds())},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepAlive.Count},
	} {
		unix.SetsockoptInt(int(fd), o.level, o.name, o.value)
	}
}
