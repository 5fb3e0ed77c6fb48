//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package client

import (
	"crypto/tls"
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
	nc := s.nc
	if encrypted, ok := nc.(*tls.Conn); ok {
		nc = encrypted.NetConn()
	}
	socket, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		gone = n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
	})
	return gone || err != nil
}
