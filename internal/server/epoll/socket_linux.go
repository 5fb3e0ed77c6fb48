package epoll

import (
	"cmp"
	"io"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Socket is the file descriptor of a non-blocking socket. Each method makes one system
// call. Read and Write use recvfrom and sendto, which bypass the kernel's file layer and
// cost 2% less than read and write over loopback. They do not announce the call to the Go
// runtime, which would prepare another thread in case the call blocks. That saves 5% to
// 10% of the cost of a command. The calls take a few microseconds, during which a garbage
// collection might have to wait.
type Socket int

// Accept accepts a connection of a listening socket and returns it with the client's
// address. The address is invalid for a Unix socket. The error is ErrWouldBlock if no
// client waits.
func (s Socket) Accept() (Socket, netip.AddrPort, error) {
	// unix.Accept4 would make an additional system call to get the protocol.
	fd, sa, err := syscall.Accept4(int(s), syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
	if err != nil {
		return -1, netip.AddrPort{}, err // an Errno, for callers that distinguish errors
	}
	switch sa := sa.(type) {
	case *syscall.SockaddrInet4:
		return Socket(fd), netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)), nil
	case *syscall.SockaddrInet6:
		ip := netip.AddrFrom16(sa.Addr).Unmap()
		if sa.ZoneId != 0 {
			ip = ip.WithZone(strconv.FormatUint(uint64(sa.ZoneId), 10))
		}
		return Socket(fd), netip.AddrPortFrom(ip, uint16(sa.Port)), nil
	}
	return Socket(fd), netip.AddrPort{}, nil
}

// Take takes the socket from c, a connection or listener of package net, and closes c. If
// the socket stayed registered with the poller of the Go runtime, each packet would wake
// two threads. If Take fails, c is unchanged.
func Take(c io.Closer) (Socket, error) {
	fd, err := Dup(c.(syscall.Conn))
	if err == nil {
		c.Close() // the socket has its own descriptor
	}
	return fd, err
}

// Dup returns another descriptor of the socket of c.
func Dup(c syscall.Conn) (Socket, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	var fd int
	controlErr := raw.Control(func(orig uintptr) {
		fd, err = unix.FcntlInt(orig, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err := cmp.Or(controlErr, err); err != nil {
		return -1, os.NewSyscallError("fcntl", err)
	}
	return Socket(fd), nil
}

// Read implements io.Reader. The error is ErrWouldBlock if no input is available, and
// io.EOF if the peer has closed or half-closed the connection.
func (s Socket) Read(buf []byte) (int, error) {
	n, err := s.call(unix.SYS_RECVFROM, buf, 0)
	switch {
	case n > 0:
		return n, nil
	case err == 0:
		return 0, io.EOF
	case err == unix.EINTR:
		err = unix.EAGAIN
	}
	return 0, err
}

// Write writes as much as the socket accepts at once, and returns the number of bytes,
// which can be zero. Unlike an io.Writer, it returns no error for a partial write: wait
// until the socket is Writable and continue.
func (s Socket) Write(buf []byte) (int, error) {
	n, err := s.call(unix.SYS_SENDTO, buf, unix.MSG_NOSIGNAL)
	switch err {
	case 0:
		return n, nil
	case unix.EAGAIN, unix.EINTR:
		return 0, nil
	}
	return 0, err
}

// call makes a system call with a buffer, flags and no peer address, which a connected
// socket does not need.
func (s Socket) call(number uintptr, buf []byte, flags uintptr) (int, unix.Errno) {
	n, _, err := syscall.RawSyscall6(number, uintptr(s), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)), flags, 0, 0) // #nosec G103 -- as package syscall does it, without telling the scheduler
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}

// Unacknowledged returns the number of written bytes that the peer's kernel has not
// acknowledged, or 0 if that is unknown.
func (s Socket) Unacknowledged() int {
	n, err := unix.IoctlGetInt(int(s), unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return n
}

// Unread returns the number of received bytes that have not been read, or 0 if that is
// unknown.
func (s Socket) Unread() int {
	n, err := unix.IoctlGetInt(int(s), unix.SIOCINQ)
	if err != nil {
		return 0
	}
	return n
}

// CloseWrite shuts down the sending side.
func (s Socket) CloseWrite() error {
	return os.NewSyscallError("shutdown", unix.Shutdown(int(s), unix.SHUT_WR))
}

// Close closes the socket and removes it from its Poller. Afterwards, the number can
// refer to another file.
func (s Socket) Close() error { return os.NewSyscallError("close", unix.Close(int(s))) }
