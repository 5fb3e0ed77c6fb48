//go:build darwin || freebsd

package server

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUser returns the user of the process at the other end of a unix socket.
func peerUser(nc net.Conn) (uid uint32, ok bool) {
	u, ok := nc.(*net.UnixConn)
	if !ok {
		return 0, false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, false
	}
	raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptXucred(int(fd), 0, unix.LOCAL_PEERCRED)
		if ok = err == nil; ok {
			uid = cred.Uid
		}
	})
	return uid, ok
}
