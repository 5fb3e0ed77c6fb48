//go:build !linux

package server

import "net"

// loops are for Linux; here each connection has a goroutine.
type loops struct{}

func (*loops) stop(bool) {}

func (*loops) check() error { return nil }

func (s *Server) prepare(net.Listener) {}

func (s *Server) adopt(net.Conn) bool { return false }
