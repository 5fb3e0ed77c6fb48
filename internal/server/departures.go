package server

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// departures are clients that have disconnected and whose loops have not handled this
// yet. Another loop could execute a later command first. beanstalkd handles all events in
// their order, and clients rely on it. Therefore, a loop ends the sessions of departed
// clients of all loops before it executes commands.
//
// A turn ends at most maxDepartures sessions; later turns end the others.
type departures struct {
	some atomic.Bool // left is not empty, or will not be

	// A goroutine must not hold this lock while it waits for the lock of a loop.
	sync.Mutex
	poll    Poller // reports each client once; the pollers of the loops poll it
	loops   int    // number of loops whose pollers poll it
	watched clients
	left    []departed
}

// A departed is a socket whose client has disconnected.
type departed struct {
	*socket
	unread bool // at that time its loop had not read all input
}

const maxDepartures = epoll.MaxEvents

// A nest is a Poller that can poll another Poller, such as the kernel's.
type nest interface{ Nest(other Poller) error }

// nest makes a loop's poller report departures, if it can.
func (d *departures) nest(p Poller) (err error) {
	d.Lock()
	defer d.Unlock()
	own, ok := p.(nest)
	if !ok {
		return nil
	}
	if d.poll == nil {
		if d.poll, err = newSystemPoller(); err != nil {
			return err
		}
	}
	d.loops++
	return own.Nest(d.poll)
}

// unnest undoes nest.
func (d *departures) unnest(p Poller) {
	d.Lock()
	defer d.Unlock()
	if _, ok := p.(nest); !ok || d.poll == nil {
		return
	}
	if d.loops--; d.loops == 0 {
		d.poll.Close()
		d.poll = nil
	}
}

// watch polls for the client's departure until forget is called.
func (d *departures) watch(s *socket) error {
	d.Lock()
	defer d.Unlock()
	if d.poll == nil || s.proxy != nil || !isPlain(s.fd) {
		return nil
	}
	s.watched = 1 + d.watched.add(s)
	return d.poll.Add(s.fd, s.watched-1, epoll.HalfClosed|epoll.Once)
}

// unwatch stops polling for the departure of a client whose socket stays open.
func (d *departures) unwatch(s *socket) {
	d.Lock()
	if s.watched > 0 && d.poll != nil {
		d.poll.Remove(s.fd) // reading reports the error of a connection that has failed
	}
	d.Unlock()
	d.forget(s)
}

// forget removes a closed socket.
func (d *departures) forget(s *socket) {
	d.Lock()
	defer d.Unlock()
	if s.watched > 0 {
		d.watched.remove(s.watched - 1)
	}
	d.remove([]departed{{socket: s}})
}

// add adds a client that has disconnected.
func (d *departures) add(s *socket) {
	d.Lock()
	defer d.Unlock()
	d.append(s)
}

func (d *departures) append(s *socket) {
	if !s.left {
		s.left = true
		d.left = append(d.left, departed{s, s.fd.(interface{ Unread() int }).Unread() > 0})
	}
	d.some.Store(true)
}

// take adds the sockets that the poller reports.
func (d *departures) take() {
	d.Lock()
	defer d.Unlock()
	if d.poll == nil {
		return
	}
	d.some.Store(true) // before Wait, which takes the events from the other loops
	for _, ev := range d.poll.Wait(0) {
		d.append(d.watched.all[ev.Index])
	}
	d.some.Store(len(d.left) > 0)
}

func (d *departures) remove(sockets []departed) {
	for _, s := range sockets {
		s.left = false
	}
	d.left = slices.DeleteFunc(d.left, func(s departed) bool { return !s.left })
	d.some.Store(len(d.left) > 0)
}

// A farewell ends the sessions of departed clients before a loop's turn executes
// commands.
type farewell struct {
	sockets []departed
	apply   []conversation.Departure
}

// collect selects the departed clients for the next turn of a loop.
func (f *farewell) collect(l *loop) {
	d := &l.srv.departures
	if !d.some.Load() {
		return
	}
	d.Lock()
	f.sockets = append(f.sockets[:0], d.left[:min(len(d.left), maxDepartures)]...)
	d.Unlock()
	l.driving.Unlock()
	defer l.driving.Lock()
	for _, s := range f.sockets {
		if departure, ok := s.departure(); ok {
			f.apply = append(f.apply, departure)
		}
	}
}

// departure returns the client's step of the turn.
func (s departed) departure() (conversation.Departure, bool) {
	s.loop.driving.Lock()
	defer s.loop.driving.Unlock()
	return s.Departure(s.unread)
}

// Apply executes the first part of the loop's request. It returns the time after it.
func (f *farewell) Apply(e *engine.Engine, now int64) (later int64) {
	for _, d := range f.apply {
		d.Apply(e, now)
		now++
	}
	return now
}

// over removes the clients that the turn has handled.
func (f *farewell) over(d *departures) {
	if len(f.sockets) == 0 {
		return
	}
	d.Lock()
	defer d.Unlock()
	d.remove(f.sockets)
	clear(f.sockets)
	clear(f.apply)
	f.sockets, f.apply = f.sockets[:0], f.apply[:0]
}
