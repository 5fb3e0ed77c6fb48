package epoll

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// wakeIndex is the index of Wake's eventfd.
const wakeIndex = -1

// A Poller waits for many sockets at once.
type Poller struct {
	fd     int
	wake   int // an eventfd
	raw    [MaxEvents]unix.EpollEvent
	events [MaxEvents]Event
}

// New returns a Poller without sockets. It uses two file descriptors. The caller must
// close it.
func New() (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("eventfd", err)
	}
	p := &Poller{fd: fd, wake: wake}
	if err := p.Add(Socket(wake), wakeIndex, Readable); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Close closes the Poller. Its sockets stay open.
func (p *Poller) Close() {
	unix.Close(p.wake)
	unix.Close(p.fd)
}

// Add starts waiting for events of a socket. Wait reports them under the index, which is
// from 0 to the largest int32, or Listeners. Closing the socket removes it.
func (p *Poller) Add(s Socket, index int, events Events) error {
	return p.control(unix.EPOLL_CTL_ADD, s, index, events)
}

// Nest makes Wait report, under the index Nested, that another Poller has events. Several
// Pollers can nest it, and none of them consumes its events.
func (p *Poller) Nest(other *Poller) error { return p.Add(Socket(other.fd), Nested, Readable) }

// Modify changes the awaited events and the index of a socket.
func (p *Poller) Modify(s Socket, index int, events Events) error {
	return p.control(unix.EPOLL_CTL_MOD, s, index, events)
}

// Remove stops waiting for a socket, which stays open.
func (p *Poller) Remove(s Socket) error { return p.control(unix.EPOLL_CTL_DEL, s, 0, 0) }

func (p *Poller) control(op int, s Socket, index int, events Events) error {
	// The kernel returns Fd unchanged.
	ev := unix.EpollEvent{Events: uint32(events), Fd: int32(index)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, op, int(s), &ev))
}

// Wait waits for events and returns them. It returns none after the timeout, after Wake
// or after a signal. The timeout is rounded up to milliseconds. Zero does not block, and
// a negative timeout waits without limit. The events are valid until the next call.
func (p *Poller) Wait(timeout time.Duration) []Event {
	ms := -1
	if timeout >= 0 {
		ms = int((timeout + time.Millisecond - 1) / time.Millisecond)
	}
	n, err := unix.EpollWait(p.fd, p.raw[:], ms)
	if err == unix.EINTR { // the Go runtime preempts by signal
		return nil
	}
	if err != nil { // such as EBADF: the caller used a closed Poller
		panic(fmt.Sprintf("epoll: wait: %v", err))
	}
	events, first := p.events[:0], 0
	for i := range p.raw[:n] {
		ev := &p.raw[i]
		if ev.Fd == wakeIndex {
			var count [8]byte
			unix.Read(p.wake, count[:]) // the next Wait blocks again
			continue
		}
		events = append(events, Event{int(ev.Fd), Events(ev.Events)})
		if last := len(events) - 1; ev.Fd < 0 {
			events[first], events[last] = events[last], events[first]
			first++
		}
	}
	return events
}

// Wake ends the current or the next Wait. It can be called from any goroutine until
// Close.
func (p *Poller) Wake() {
	one := [8]byte{1}
	unix.Write(p.wake, one[:]) // fails only after 2^64-2 calls without a Wait
}
