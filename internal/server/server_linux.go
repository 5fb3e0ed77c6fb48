package server

import (
	"errors"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// loops are those of a server, started with the first listener of sockets.
type loops struct {
	all  []*loop
	next int // the one that gets the next socket
}

// stop makes the loops end their connections, and then themselves.
func (ls *loops) stop(abort bool) {
	for _, l := range ls.all {
		l.post(func(m *mailbox) { m.stop, m.abort = true, abort })
	}
}

// dismiss ends all connections at once that were there before the leadership changed for the nth time.
func (ls *loops) dismiss(reason error, nth uint32) {
	for _, l := range ls.all {
		l.post(func(m *mailbox) { m.everybody, m.before = reason, nth })
	}
}

// accept makes the first loop, if there is one, accept whoever waits.
func (ls *loops) accept() {
	if len(ls.all) > 0 {
		ls.all[0].post(func(m *mailbox) { m.room = true })
	}
}

// check is Server.Check for the sockets. L1. A socket that is open is at its
// index, and its state says what its poller waits for. L2. A round that is not
// delivered is unsettled. L3. The timers have open sockets, which know their places.
func (ls *loops) check() error {
	var broken []error
	for _, l := range ls.all {
		open := 0
		for i, s := range l.socks.all {
			if s == nil {
				continue
			}
			open++
			broken = append(broken, s.Check())
			if s.index != i {
				broken = append(broken, fmt.Errorf("server: L1: socket %d is at index %d", s.index, i))
			}
			if s.State() == conversation.Reading && !s.interest.Has(epoll.Readable) || s.State() == conversation.Writing && !s.interest.Has(epoll.Writable) {
				broken = append(broken, fmt.Errorf("server: L1: a socket that is %v waits for %#x", s.State(), s.interest))
			}
		}
		for i, s := range l.timers {
			if s.timer.place != i+1 || l.socks.all[s.index] != s {
				broken = append(broken, fmt.Errorf("server: L3: a socket that is %v is at %d of the timers, and thinks at %d", s.State(), i+1, s.timer.place))
			}
		}
		if open != l.socks.taken() {
			broken = append(broken, fmt.Errorf("server: L1: %d sockets are open, %d counted", open, l.socks.taken()))
		}
		if l.syncing > l.unsettled {
			broken = append(broken, fmt.Errorf("server: L2: %d rounds are being synced, of %d", l.syncing, l.unsettled))
		}
	}
	return errors.Join(broken...)
}

// startLoops starts the loops, unless they run, and returns the first. The kernel is to have room for so many files.
func (s *Server) startLoops(newPoller func() (Poller, error), files int) (first *loop, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.loops.all) > 0 {
		return s.mu.loops.all[0], nil
	}
	if s.mu.closing {
		return nil, conversation.ErrStopped
	}
	for range s.opt.Loops {
		l, err := newLoop(s, newPoller)
		if err != nil {
			for _, l := range s.mu.loops.all {
				s.departures.unnest(l.poll)
				l.poll.Close()
			}
			s.mu.loops.all = nil
			return nil, err
		}
		s.mu.loops.all = append(s.mu.loops.all, l)
	}
	first = s.mu.loops.all[0]
	first.first = true
	s.broker.TellMoreDue(first.tellMoreDue)
	if files > 0 {
		s.wg.Go(func() { epoll.ReserveFiles(files) })
	}
	for _, l := range s.mu.loops.all {
		s.wg.Go(l.run)
	}
	return first, nil
}

func (s *Server) removeSocket(c *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.sockets--
	s.mu.left.Broadcast()
	if c.visitor != nil {
		s.removeVisitor(c.client)
		return
	}
	s.leave(c.client)
}
