package server

import (
	"net"

	"github.com/beanpole-mq/beanpole/internal/access"
)

// PeerUser returns the user of the process at the other end of a Unix socket. The user is
// unknown for other connections, or if the system does not report it.
func PeerUser(nc net.Conn) (user access.UnixUser) {
	u, isUnix := nc.(*net.UnixConn)
	if !isUnix {
		return user
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return user
	}
	raw.Control(func(fd uintptr) { user = socketUser(int(fd)) })
	return user
}
