package server

import "net"

// A Stream is a connection that event loops can drive though the kernel does not know it: one of package mux. Its methods are
// described there.
type Stream interface {
	net.Conn
	CloseWrite() error
	TryRead(b []byte) (int, error)
	TryWrite(b []byte) (int, error)
	PutBack(b []byte)
	Unread() int
	Held() int
	Ready() (readable, writable, ended bool)
	Notify(f func())
}
