//go:build !linux

package server

import (
	"net"
	"sync"
)

// loops are for Linux; here each connection has a goroutine.
type loops struct{}

func (*loops) stop(bool) {}

func (*loops) accept() {}

func (*loops) check() error { return nil }

func (*loops) dismiss(error, uint32) {}

// accepting is for loops, too, and so are departures.
type accepting struct{ sync.Mutex }

type departures struct{}

func (s *Server) unwatch() {}

// A relayLoop is for Linux, too.
type relayLoop struct{}

func (*relayLoop) stop() {}

func (*relayLoop) dismiss(uint32) {}

func (s *Server) relayInLoop(*netConn, net.Conn, Leadership) bool { return false }

func (s *Server) moveToLoop(*netConn, *lobby, *ListenOptions, Leadership) (bool, error) {
	return false, nil
}

func (s *Server) serveInLoop(net.Listener, *ListenOptions) bool { return false }
