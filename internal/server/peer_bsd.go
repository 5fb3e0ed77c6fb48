//go:build darwin || freebsd

package server

import "golang.org/x/sys/unix"

// socketUser returns the user of the process at the other end of a unix socket.
func socketUser(fd int) (uid uint32, ok bool) {
	cred, err := unix.GetsockoptXucred(fd, 0, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, false
	}
	return cred.Uid, true
}
