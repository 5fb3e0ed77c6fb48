//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package client

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// staleAfter is how long ago the last command must have been sent for a connection to
// be looked at before it is used for one that cannot be repeated.
const staleAfter = 100 * time.Millisecond

// stale reports whether the server has closed the connection while it was
// silent. That is a hint only: a server can close it any moment.
func (s *stream) stale() bool {
	if s.now()-s.active < staleAfter {
		return false
	}
	encrypted, ok := s.nc.(*tls.Conn)
	if !ok {
		_, gone := peek(s.nc)
		return gone
	}
	for {
		sent, gone := peek(encrypted.NetConn())
		if !sent {
			return gone
		}
		// TLS has messages of its own: tickets, and the one that says that it is closed. They are
		// encrypted, so they must be read. After a ticket the read waits for more.
		s.expiry = -1 // so that the next limit moves it
		encrypted.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := encrypted.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return true
		}
	}
}

// peek reports whether bytes wait in a socket, or else whether the other side has
// closed it.
func peek(nc net.Conn) (sent, gone bool) {
	socket, ok := nc.(syscall.Conn)
	if !ok {
		return false, false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false, true
	}
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		sent = n > 0
		gone = n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
	})
	return sent, gone || err != nil
}
