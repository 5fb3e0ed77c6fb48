//go:build !linux

package server

import (
	"time"

	"golang.org/x/sys/unix"
)

// hungUp cannot tell without reading here: the hang-up of a client that has sent more
// than conversation.MaxAhead after a waiting reserve is noticed after the answer.
func hungUp(int) bool { return false }

// unacknowledged cannot tell here. So a client makes progress when the kernel takes more.
func unacknowledged(int) int { return -1 }

// unread returns how many bytes wait to be read from a socket.
func unread(fd int) int {
	const fionread = 0x4004667f // on macOS and all BSDs
	n, err := unix.IoctlGetInt(fd, fionread)
	if err != nil {
		return 0
	}
	return n
}

// setDeadAfter is for Linux: elsewhere the system decides.
func setDeadAfter(int, time.Duration) {}
