package epoll

import "syscall"

// Events are events of a socket, to wait for or reported, with the numbers of Linux.
// Failed and HungUp are always reported.
type Events uint32

const (
	Readable   Events = 0x1
	Writable   Events = 0x4
	Failed     Events = 0x8
	HungUp     Events = 0x10   // the peer will send nothing more, and reads nothing more
	HalfClosed Events = 0x2000 // the peer will send nothing more

	// Once asks for each event to be reported when it happens, and not again.
	Once Events = 1 << 31
)

// Has reports whether at least one event of the set has happened.
func (e Events) Has(set Events) bool { return e&set != 0 }

// An Event describes the events of a socket.
type Event struct {
	Index int // as given to Add
	Events
}

// MaxEvents is the maximum number of events that Wait returns. The kernel reports the
// others, in turn, to the next calls.
const MaxEvents = 256

// Indexes that do not belong to connections. Their events come first.
const (
	Listeners = -2 // of all sockets that listen
	Nested    = -3 // of a Poller within this one
)

// ErrWouldBlock is returned by Read if no input is available, and by Accept if no client
// waits.
var ErrWouldBlock error = syscall.EAGAIN
