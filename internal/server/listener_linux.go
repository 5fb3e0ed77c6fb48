package server

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// serveInLoop is Serve for a listener whose connections are for loops. It returns false
// at once if they are not.
func (s *Server) serveInLoop(l net.Listener, t *ListenOptions) bool {
	a := &acceptor{terms: t, failed: make(chan failure, 1)}
	switch l := l.(type) {
	case *net.TCPListener, *net.UnixListener:
		raw, err := l.(syscall.Conn).SyscallConn()
		if err != nil || t.TLS != nil || !s.pollsKernel() {
			return false
		}
		a.listening = &listeningSocket{raw: raw, deadAfter: s.deadAfter()}
	case Network:
		a.listening = l
	default:
		return false
	}
	if l, ok := l.(*net.TCPListener); ok {
		if taken, err := s.takeListener(l); err == nil {
			defer s.removeListener(taken)
			a.listening = &listeningSocket{raw: taken, deadAfter: s.deadAfter()}
		}
	}
	return s.acceptInLoop(a, l)
}

// acceptElsewhere returns a connection of package net that gets the socket of a client.
func acceptElsewhere(fd Socket, client net.Addr) (net.Conn, error) {
	own, ok := fd.(epoll.Socket)
	if !ok { // of a network that has no connections of another kind
		return nil, cmp.Or(fd.Close(), errors.ErrUnsupported)
	}
	f := os.NewFile(uintptr(own), client.String())
	defer f.Close()
	nc, err := net.FileConn(f)                // has its own copy of the descriptor
	if err == nil && nc.RemoteAddr() == nil { // the client has reset the connection, and nobody knows any more who it was
		nc.Close()
		err = net.ErrClosed
	}
	return nc, err
}

// A takenListener is a listening TCP socket that was taken away from package net. If the
// Go runtime waited for it, too, each new client would wake two threads.
type takenListener struct {
	fd     epoll.Socket
	addr   net.Addr
	closed bool // the lock of accepting guards it
}

// takeListener takes the socket of a listener, which it closes, unless there is an error.
func (s *Server) takeListener(l *net.TCPListener) (*takenListener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closing {
		return nil, conversation.ErrStopped
	}
	fd, err := epoll.Take(l)
	if err != nil {
		return nil, err
	}
	taken := &takenListener{fd: fd, addr: l.Addr()}
	s.mu.listeners[taken] = struct{}{}
	return taken, nil
}

// Control calls f with the descriptor, as that of syscall.RawConn does.
func (l *takenListener) Control(f func(fd uintptr)) error {
	if l.closed {
		return net.ErrClosed
	}
	f(uintptr(l.fd))
	return nil
}

// Accept implements net.Listener. It is not called.
func (l *takenListener) Accept() (net.Conn, error) { return nil, net.ErrClosed }

// Addr implements net.Listener.
func (l *takenListener) Addr() net.Addr { return l.addr }

// Close implements net.Listener.
func (l *takenListener) Close() error {
	if l.closed {
		return net.ErrClosed
	}
	l.closed = true
	return l.fd.Close()
}

// A listeningSocket is one of the kernel's. That of a unix socket stays registered with
// the poller of the Go runtime: package net, to which it belongs, removes its file.
type listeningSocket struct {
	raw       interface{ Control(func(fd uintptr)) error }
	deadAfter time.Duration
	added     bool // to the Poller
	inherits  bool // all clients that came before it had its options have been accepted
}

// AcceptSocket implements Listening.
func (s *listeningSocket) AcceptSocket() (Socket, net.Addr, error) {
	var fd epoll.Socket
	var client netip.AddrPort
	var err error
	if s.raw.Control(func(listening uintptr) { fd, client, err = epoll.Socket(listening).Accept() }) != nil {
		return nil, nil, net.ErrClosed
	}
	if err != nil {
		s.inherits = s.inherits || s.added && err == epoll.ErrWouldBlock
		return nil, nil, err
	}
	if !client.IsValid() {
		return fd, unnamed, nil
	}
	if !s.inherits {
		setOptions(fd)
	}
	setDeadAfter(int(fd), s.deadAfter) // which the kernel does not pass on
	return fd, net.TCPAddrFromAddrPort(client), nil
}

// unnamed is the address that package net gives to the client of a unix socket.
var unnamed net.Addr = &net.UnixAddr{Net: "unix", Name: "@"}

// Watch implements Listening.
func (s *listeningSocket) Watch(p Poller, on bool) error {
	err := net.ErrClosed
	s.raw.Control(func(fd uintptr) {
		events := epoll.Events(0)
		if on {
			events = epoll.Readable
		}
		if s.added {
			err = p.Modify(epoll.Socket(fd), epoll.Listeners, events)
		} else {
			// One from a service manager may block.
			unix.SetNonblock(int(fd), true)
			setOptions(epoll.Socket(fd))
			err = p.Add(epoll.Socket(fd), epoll.Listeners, events)
			s.added = err == nil
		}
	})
	return err
}

// setOptions does for a TCP connection what package net does: small replies leave at
// once, and the client is asked for a sign of life (keepAlive). An error is that of a
// connection which has ended already, or of a unix socket.
//
// On Linux a connection has the options that its listening socket had when the client
// connected. So they are set once, and only clients that connected before that need their
// own.
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
