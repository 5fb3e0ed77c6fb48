package epoll

import "syscall"

// Events are things that can happen to a socket: what to wait for, and what has
// happened, as Linux numbers them. Failed and HungUp are reported without being asked for.
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

// An Event tells what has happened to a socket.
type Event struct {
	Index int // as given to Add
	Events
}

// MaxEvents is how many events Wait returns at most. The kernel reports the
// others, in turn, to the next calls.
const MaxEvents = 256

// Indexes that are not those of connections. Their events come first.
const (
	Listeners = -2 // of all sockets that listen
	Nested    = -3 // of a Poller within this one
)

// ErrWouldBlock is what Read returns when there is nothing to read yet, and Accept
// when nobody waits.
var ErrWouldBlock error = syscall.EAGAIN
