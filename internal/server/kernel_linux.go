package server

import (
	"time"

	"golang.org/x/sys/unix"
)

// hungUp tells whether the peer has closed or half-closed a connection, even
// though there is unread input.
func hungUp(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(p, 0)
	return err == nil && n > 0
}

// unacknowledged returns how many bytes that were written to a socket its peer's kernel
// has not acknowledged; -1 if that cannot be told.
func unacknowledged(fd int) int { return count(fd, unix.SIOCOUTQ) }

// unread returns how many bytes wait to be read from a socket.
func unread(fd int) int { return max(0, count(fd, unix.SIOCINQ)) }

// setDeadAfter ends a TCP connection whose peer acknowledges nothing for so long.
func setDeadAfter(fd int, d time.Duration) {
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds())) // an error is that of a unix socket, or of one that has ended
}

// count asks the kernel for a number; -1 if it does not know.
func count(fd int, request uint) int {
	n, err := unix.IoctlGetInt(fd, request)
	if err != nil {
		return -1
	}
	return n
}
