package server

import "golang.org/x/sys/unix"

// hungUp tells whether the peer has closed or half-closed a connection, even
// though there is unread input.
func hungUp(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(p, 0)
	return err == nil && n > 0
}
