//go:build !linux

package server

import (
	"net"

	"github.com/beanpole-mq/beanpole/internal/access"
)

// loops are for Linux; here each connection has a goroutine.
type loops struct{}

func (*loops) stop(bool) {}

func (*loops) check() error { return nil }

func (s *Server) prepare(net.Listener) {}

func (s *Server) adopt(net.Conn, *guard, *access.Identity) bool { return false }
