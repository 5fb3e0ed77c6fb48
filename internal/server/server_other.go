//go:build !linux

package server

import (
	"net"
	"sync"
)

// loops are for Linux; here each connection has a goroutine.
type loops struct{}

func (*loops) stop(bool) {}

func (*loops) check() error { return nil }

func (*loops) dismiss(error) {}

// accepting is for loops, too.
type accepting struct{ sync.Mutex }

func (s *Server) serveInLoop(net.Listener, *Terms) bool { return false }
