//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package client

import (
	"crypto/tls"
	"errors"
	"os"
	"syscall"
	"time"
)

// A look queries the state of a socket without blocking and without allocating.
type look struct {
	raw    syscall.RawConn
	unread bool // whether the socket has unread bytes
	gone   bool // whether the server has closed the connection
	at     func(fd uintptr)
}

// stale reports whether the server has closed the connection. This is only a hint,
// because the server can close it at any moment. It costs one nonblocking system call.
func (s *stream) stale() bool {
	nc := s.nc
	encrypted, _ := nc.(*tls.Conn)
	if encrypted != nil {
		nc = encrypted.NetConn()
	}
	if s.look.at == nil {
		socket, ok := nc.(syscall.Conn)
		if !ok {
			return false
		}
		raw, err := socket.SyscallConn()
		if err != nil {
			return true
		}
		s.look.raw, s.look.at = raw, s.look.peek
	}
	for {
		if err := s.look.raw.Control(s.look.at); err != nil {
			return true
		}
		if encrypted == nil || !s.look.unread {
			return s.look.gone
		}
		// A server sends some TLS messages unrequested: session tickets, and the alert
		// that closes the connection. They are encrypted, so they must be read. After a
		// ticket, the read waits for more.
		s.expiry = -1 // makes the next setDeadline set a deadline
		encrypted.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := encrypted.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return true
		}
	}
}

// peek checks the socket without consuming bytes.
func (l *look) peek(fd uintptr) {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	l.unread = n > 0
	l.gone = n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
}
