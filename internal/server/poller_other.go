//go:build !linux

package server

import (
	"errors"
	"net"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
)

// Loops cannot wait for the kernel's sockets here: each has a pump.

func newSystemPoller() (Poller, error) { return newBell() }

func (s *Server) serveInLoop(l net.Listener, t *ListenOptions) bool {
	n, ok := l.(Network)
	return ok && s.acceptInLoop(&acceptor{listening: n, terms: t, failed: make(chan failure, 1)}, l)
}

func isPlain(Socket) bool { return false }

func takeSocket(net.Conn) (Socket, error) { return nil, errors.ErrUnsupported }

func (s *socket) user() access.UnixUser { return access.UnixUser{} }

func setDeadAfter(int, time.Duration) {} // the system decides

func reserveFiles(int) {}
