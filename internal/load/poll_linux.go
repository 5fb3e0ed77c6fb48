package load

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A poller waits for many sockets at once: level-triggered epoll, in which a
// socket is registered once and touched again only when a write did not go
// through. Sockets are known by an index that the owner chooses.
type poller struct {
	fd     int
	events [512]unix.EpollEvent
}

// idleWait bounds a wait, so that a loop without events sees a change of phase.
const idleWait = 10 * time.Millisecond

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	return &poller{fd: fd}, nil
}

func (p *poller) close() { unix.Close(p.fd) }

func (p *poller) add(fd, index int) error { return p.ctl(unix.EPOLL_CTL_ADD, fd, index, unix.EPOLLIN) }

// watchWrites says whether fd is also waited for to become writable.
func (p *poller) watchWrites(fd, index int, on bool) error {
	events := uint32(unix.EPOLLIN)
	if on {
		events |= unix.EPOLLOUT
	}
	return p.ctl(unix.EPOLL_CTL_MOD, fd, index, events)
}

func (p *poller) ctl(op, fd, index int, events uint32) error {
	// The kernel hands Fd back as it is; to it, this is opaque.
	ev := unix.EpollEvent{Events: events, Fd: int32(index)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, op, fd, &ev))
}

// wait returns the events that are there, after at most idleWait. They are
// valid until the next call.
func (p *poller) wait() ([]unix.EpollEvent, error) {
	n, err := unix.EpollWait(p.fd, p.events[:], int(idleWait/time.Millisecond))
	switch {
	case err == unix.EINTR: // the Go runtime preempts by signal
		return nil, nil
	case err != nil:
		return nil, os.NewSyscallError("epoll_wait", err)
	}
	return p.events[:n], nil
}

// A sock is a non-blocking socket. The methods that read and write make one
// system call, and no registration unless the peer does not read.
type sock struct {
	fd, index int  // fd is -1 when closed
	watching  bool // for the socket to become writable
}

func (k *sock) closed() bool { return k.fd < 0 }

func (k *sock) close() {
	if !k.closed() {
		unix.Close(k.fd)
		k.fd = -1
	}
}

// read returns 0, nil when nothing was there, and errHungUp at the end.
func (k *sock) read(buf []byte) (int, error) {
	n, err := unix.Read(k.fd, buf)
	switch {
	case n > 0:
		return n, nil
	case err == nil:
		return 0, errHungUp
	case err == unix.EAGAIN || err == unix.EINTR:
		return 0, nil
	}
	return 0, os.NewSyscallError("read", err)
}

// write returns how much of out the kernel took. When that is not all, the
// poller will report the socket as writable.
func (k *sock) write(p *poller, out []byte) (n int, err error) {
	if len(out) > 0 {
		n, err = unix.Write(k.fd, out)
		if err != nil && err != unix.EAGAIN && err != unix.EINTR {
			return 0, os.NewSyscallError("write", err)
		}
		n = max(n, 0)
	}
	if blocked := n < len(out); blocked != k.watching {
		k.watching = blocked
		return n, p.watchWrites(k.fd, k.index, blocked)
	}
	return n, nil
}

// takeFD returns a non-blocking duplicate of the descriptor of c, a connection
// or listener of package net, and closes c: a socket that is registered with
// the Go runtime's own poller as well would wake two threads for each packet.
func takeFD(c io.Closer) (int, error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return -1, fmt.Errorf("load: a %T has no file descriptor", c)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd := -1
	var dupErr error
	err = raw.Control(func(orig uintptr) {
		fd, dupErr = unix.FcntlInt(orig, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err == nil {
		err = os.NewSyscallError("fcntl", dupErr)
	}
	if err != nil {
		return -1, err
	}
	if err := c.Close(); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
