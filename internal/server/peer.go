package server

import "net"

// PeerUser returns the user of the process at the other end of a unix socket; ok is
// false if it cannot be told, or nc is another connection.
func PeerUser(nc net.Conn) (uid uint32, ok bool) {
	u, isUnix := nc.(*net.UnixConn)
	if !isUnix {
		return 0, false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, false
	}
	raw.Control(func(fd uintptr) { uid, ok = socketUser(int(fd)) })
	return uid, ok
}
