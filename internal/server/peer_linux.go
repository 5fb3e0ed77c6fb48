package server

import (
	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/access"
)

// socketUser returns the user of the process at the other end of a Unix socket.
func socketUser(fd int) access.UnixUser {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return access.UnixUser{}
	}
	return access.UnixUser{ID: cred.Uid, Known: true}
}
