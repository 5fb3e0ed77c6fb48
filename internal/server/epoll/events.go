package epoll

import "syscall"

// Events are events of a socket, with the values of Linux. Failed and HungUp are always
// reported.
type Events uint32

const (
	Readable   Events = 0x1
	Writable   Events = 0x4
	Failed     Events = 0x8
	HungUp     Events = 0x10   // the peer sends and reads nothing more
	HalfClosed Events = 0x2000 // the peer sends nothing more

	// Once reports each event only once.
	Once Events = 1 << 31
)

// Has reports whether e contains at least one event of set.
func (e Events) Has(set Events) bool { return e&set != 0 }

// An Event describes the events of a socket.
type Event struct {
	Index int // the index passed to Add
	Events
}

// MaxEvents is the maximum number of events that Wait returns. The kernel reports the
// others in later calls.
const MaxEvents = 256

// Indexes of sockets that are not connections. Their events come first.
const (
	Listeners = -2 // index of all listening sockets
	Nested    = -3 // index of a nested Poller
)

// ErrWouldBlock is returned by Read if no input is available, and by Accept if no client
// waits.
var ErrWouldBlock error = syscall.EAGAIN
