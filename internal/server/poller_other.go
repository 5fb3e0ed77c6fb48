//go:build !linux

package server

import (
	"errors"
	"net"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
)

// On this system, loops cannot poll kernel sockets: each socket has a pump.

func newSystemPoller() (Poller, error) { return newWakeup() }

func (a *acceptor) serveInLoop() bool {
	n, ok := a.from.(Network)
	return ok && a.acceptInLoop(n)
}

func isPlaintext(Socket) bool { return false }

func takeSocket(net.Conn) (Socket, error) { return nil, errors.ErrUnsupported }

func (s *socket) user() access.UnixUser { return access.UnixUser{} }

func setDeadAfter(int, time.Duration) {} // the system's default applies
