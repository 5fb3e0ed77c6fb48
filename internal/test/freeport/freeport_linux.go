package freeport

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Reserve reserves a port for a server that binds with SO_REUSEADDR, as servers usually
// do. The kernel does not choose the port for other sockets, and refuses connections to
// it until the server listens.
func Reserve() (*Port, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	number, err := bind(fd)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	return &Port{number, func() { unix.Close(fd) }}, nil
}

// bind binds a socket to a free port, which other sockets can then share.
func bind(fd int) (port int, err error) {
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	// Set the option only after the bind. Otherwise the kernel could choose a port that
	// another socket shares.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	addr, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	return addr.(*unix.SockaddrInet4).Port, nil
}
