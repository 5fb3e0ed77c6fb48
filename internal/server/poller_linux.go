package server

import (
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// systemPoller is the Poller for kernel sockets.
type systemPoller struct{ *epoll.Poller }

func newSystemPoller() (Poller, error) {
	p, err := epoll.New()
	return systemPoller{p}, err
}

func (p systemPoller) Add(s Socket, index int, events epoll.Events) error {
	return p.Poller.Add(kernelSocket(s), index, events)
}

func (p systemPoller) Modify(s Socket, index int, events epoll.Events) error {
	return p.Poller.Modify(kernelSocket(s), index, events)
}

func (p systemPoller) Remove(s Socket) error { return p.Poller.Remove(kernelSocket(s)) }

// Nest makes Wait report events of another Poller.
func (p systemPoller) Nest(other Poller) error { return p.Poller.Nest(other.(systemPoller).Poller) }

// kernelSocket returns the kernel socket, which can be below TLS.
func kernelSocket(s Socket) epoll.Socket {
	if t, ok := s.(*tlsSocket); ok {
		s = t.fd
	}
	return s.(epoll.Socket)
}

// isPlaintext reports whether a socket is a kernel socket without TLS.
func isPlaintext(s Socket) bool {
	_, ok := s.(epoll.Socket)
	return ok
}

// takeSocket takes the socket of a connection from package net.
func takeSocket(nc net.Conn) (Socket, error) {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
		return epoll.Take(nc)
	}
	return nil, errors.ErrUnsupported
}

// user returns the user of the process at the other end of a Unix socket.
func (s *socket) user() access.UnixUser {
	fd, ok := s.fd.(epoll.Socket)
	if !ok {
		return access.UnixUser{}
	}
	return socketUser(int(fd))
}

// setDeadAfter makes the kernel close a TCP connection if the peer acknowledges no data
// for d.
func setDeadAfter(fd int, d time.Duration) {
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds())) // ignore the error of a Unix socket or a closed connection
}
