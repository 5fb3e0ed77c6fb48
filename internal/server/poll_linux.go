package server

import (
	"io"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A poller waits for many sockets at once: level-triggered epoll, and an eventfd
// by which other goroutines end the wait. Sockets are known by an index that the
// owner chooses.
type poller struct {
	fd, bell int
	events   [maxEvents]unix.EpollEvent
}

// maxEvents is how many sockets a loop serves in one round at most. The kernel
// gives the others their turn in the next.
const maxEvents = 256

// bellIndex is what the poller calls the eventfd.
const bellIndex = -1

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	p := &poller{fd: fd}
	if p.bell, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("eventfd", err)
	}
	if err := p.add(p.bell, bellIndex, unix.EPOLLIN); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *poller) close() {
	unix.Close(p.bell)
	unix.Close(p.fd)
}

func (p *poller) add(fd, index int, events uint32) error {
	return p.ctl(unix.EPOLL_CTL_ADD, fd, index, events)
}

func (p *poller) modify(fd, index int, events uint32) error {
	return p.ctl(unix.EPOLL_CTL_MOD, fd, index, events)
}

func (p *poller) ctl(op, fd, index int, events uint32) error {
	// The kernel hands Fd back as it is; to it, this is opaque.
	ev := unix.EpollEvent{Events: events, Fd: int32(index)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, op, fd, &ev))
}

// wait returns what has happened, after at most the given time; negative: for as
// long as it takes. The events are valid until the next call.
func (p *poller) wait(most time.Duration) []unix.EpollEvent {
	ms := -1
	if most >= 0 {
		ms = int((most + time.Millisecond - 1) / time.Millisecond)
	}
	n, err := unix.EpollWait(p.fd, p.events[:], ms)
	if err != nil {
		return nil // EINTR: the runtime preempts by signal; no other error can come
	}
	return p.events[:n]
}

// ring ends the wait.
func (p *poller) ring() {
	one := [8]byte{1}
	unix.Write(p.bell, one[:]) // fails only when it rings already
}

// silence stops the ringing.
func (p *poller) silence() {
	var count [8]byte
	unix.Read(p.bell, count[:])
}

// A descriptor is a non-blocking socket. Its methods make one system call each.
//
// They do not tell the runtime, which for calls that may block would get another
// thread ready: that is a twentieth to a tenth of what a command costs. Such a
// call takes a few microseconds; for so long a garbage collection may have to
// wait for the loop.
type descriptor int

// Read implements io.Reader. When nothing is there the error is unix.EAGAIN.
func (fd descriptor) Read(buf []byte) (int, error) {
	n, err := fd.call(unix.SYS_READ, buf)
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

// write returns how much the socket took, which may be nothing.
func (fd descriptor) write(buf []byte) (int, error) {
	n, err := fd.call(unix.SYS_WRITE, buf)
	switch err {
	case 0:
		return n, nil
	case unix.EAGAIN, unix.EINTR:
		return 0, nil
	}
	return 0, err
}

func (fd descriptor) call(number uintptr, buf []byte) (int, unix.Errno) {
	n, _, err := syscall.RawSyscall(number, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)))
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}

func (fd descriptor) close() { unix.Close(int(fd)) }
