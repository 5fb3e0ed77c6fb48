//go:build !linux

package freeport

import (
	"fmt"
	"net"
)

// Reserve returns a port that was free at the time of the call. It cannot reserve the
// port, because two sockets cannot share a port on this system.
func Reserve() (*Port, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	return &Port{l.Addr().(*net.TCPAddr).Port, func() {}}, l.Close()
}
