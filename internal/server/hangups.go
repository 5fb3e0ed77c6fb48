package server

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// hangups are clients that have disconnected and whose loops have not handled this yet.
// Another loop could execute a later command first. beanstalkd handles all events in the
// order of arrival, and clients rely on that. Therefore, a loop ends the sessions of
// these clients, in all loops, before it executes commands.
//
// A turn ends at most maxHangups sessions; later turns end the others.
type hangups struct {
	some atomic.Bool // true if pending is not empty, or is about to be filled

	// A goroutine must not hold this lock while it waits for the lock of a loop.
	sync.Mutex
	poll    Poller // reports each client once; the pollers of the loops poll it
	watched clients
	pending []hangup
}

// A hangup is a socket whose client has disconnected.
type hangup struct {
	*socket
	unread bool // its loop had not read all input when the client disconnected
}

const maxHangups = epoll.MaxEvents

// An epollGroup is a Poller that can poll another Poller, such as the kernel's.
type epollGroup interface{ Nest(other Poller) error }

// addLoop makes a loop's poller report hang-ups, if it can.
func (h *hangups) addLoop(p Poller) (err error) {
	h.Lock()
	defer h.Unlock()
	group, ok := p.(epollGroup)
	if !ok {
		return nil
	}
	if h.poll == nil {
		if h.poll, err = newSystemPoller(); err != nil {
			return err
		}
	}
	return group.Nest(h.poll)
}

// close closes the poller when no loop is left.
func (h *hangups) close() {
	h.Lock()
	defer h.Unlock()
	if h.poll != nil {
		h.poll.Close()
		h.poll = nil
	}
}

// watch polls for the client's hang-up until forget is called.
func (h *hangups) watch(s *socket) error {
	h.Lock()
	defer h.Unlock()
	if h.poll == nil || s.proxy != nil || !isPlaintext(s.fd) {
		return nil
	}
	s.watched = 1 + h.watched.add(s)
	return h.poll.Add(s.fd, s.watched-1, epoll.HalfClosed|epoll.Once)
}

// unwatch stops polling for the hang-up of a client whose socket stays open.
func (h *hangups) unwatch(s *socket) {
	h.Lock()
	if s.watched > 0 && h.poll != nil {
		h.poll.Remove(s.fd) // reads report the error of a failed connection
	}
	h.Unlock()
	h.forget(s)
}

// forget removes a closed socket.
func (h *hangups) forget(s *socket) {
	h.Lock()
	defer h.Unlock()
	if s.watched > 0 {
		h.watched.remove(s.watched - 1)
	}
	h.remove([]hangup{{socket: s}})
}

// add adds a client that has disconnected.
func (h *hangups) add(s *socket) {
	h.Lock()
	defer h.Unlock()
	h.append(s)
}

func (h *hangups) append(s *socket) {
	if !s.hungUp {
		s.hungUp = true
		h.pending = append(h.pending, hangup{s, s.fd.(interface{ Unread() int }).Unread() > 0})
	}
	h.some.Store(true)
}

// take adds the sockets that the poller reports.
func (h *hangups) take() {
	h.Lock()
	defer h.Unlock()
	if h.poll == nil {
		return
	}
	h.some.Store(true) // must precede Wait, which takes the events from the other loops
	for _, ev := range h.poll.Wait(0) {
		h.append(h.watched.all[ev.Index])
	}
	h.some.Store(len(h.pending) > 0)
}

func (h *hangups) remove(sockets []hangup) {
	for _, s := range sockets {
		s.hungUp = false
	}
	h.pending = slices.DeleteFunc(h.pending, func(s hangup) bool { return !s.hungUp })
	h.some.Store(len(h.pending) > 0)
}

// A hangupStep is the first step of a loop's turn. It ends the sessions of clients that
// have disconnected.
type hangupStep struct {
	sockets []hangup
	apply   []conversation.SessionEnd
}

// collect selects the clients for the next turn of a loop.
func (f *hangupStep) collect(l *loop) {
	h := &l.srv.hangups
	if !h.some.Load() {
		return
	}
	h.Lock()
	f.sockets = append(f.sockets[:0], h.pending[:min(len(h.pending), maxHangups)]...)
	h.Unlock()
	l.driving.Unlock()
	defer l.driving.Lock()
	for _, s := range f.sockets {
		s.loop.driving.Lock()
		end, ok := s.SessionEnd(s.unread)
		s.loop.driving.Unlock()
		if ok {
			f.apply = append(f.apply, end)
		}
	}
}

// Apply executes the first step of the loop's turn. It returns the time after that.
func (f *hangupStep) Apply(e *engine.Engine, now int64) (later int64) {
	for _, d := range f.apply {
		d.Apply(e, now)
		now++
	}
	return now
}

// finish removes the clients that the turn has handled.
func (f *hangupStep) finish(h *hangups) {
	if len(f.sockets) == 0 {
		return
	}
	h.Lock()
	defer h.Unlock()
	h.remove(f.sockets)
	clear(f.sockets)
	clear(f.apply)
	f.sockets, f.apply = f.sockets[:0], f.apply[:0]
}
