package server

import "sync"

// slots limits the number of connections. Each connection has a slot from its accept to
// its close. While all slots are taken, the server accepts no client, and new clients
// wait in the backlog of the listening socket. So a client that replaces its connection
// does not exceed the limit.
type slots struct {
	sync.Mutex
	reports *reports
	limit   int // Options.MaxConns
	taken   int
	freed   sync.Cond // signaled when a slot is free, or the server stops
	wanted  *loop     // loop that must accept when a slot is free, or nil
	closed  bool      // the server is stopping
}

// full reports whether all slots are taken.
func (s *slots) full() bool {
	s.Lock()
	defer s.Unlock()
	return s.taken >= s.limit
}

// take takes a slot for a connection that is about to be accepted. If no slot is free, it
// logs a warning and returns false, and the next call of free makes the first loop
// accept. It also returns false if the server is stopping.
func (s *slots) take(first *loop) bool {
	s.Lock()
	defer s.Unlock()
	if s.closed {
		return false
	}
	if s.taken >= s.limit {
		s.wanted = first
		s.reports.slotsTaken(s.limit)
		return false
	}
	s.taken++
	return true
}

// wait waits for a slot for an accepted connection. It returns false if the server is
// stopping.
func (s *slots) wait() bool {
	s.Lock()
	defer s.Unlock()
	for s.taken >= s.limit && !s.closed {
		s.reports.slotsTaken(s.limit)
		s.freed.Wait()
	}
	if s.closed {
		return false
	}
	s.taken++
	return true
}

// free frees the slot of a connection that has ended or was not admitted.
func (s *slots) free() {
	s.Lock()
	defer s.Unlock()
	s.taken--
	s.freed.Signal()
	if s.wanted != nil {
		s.wanted.inbox.acceptClients()
		s.wanted = nil
	}
}

// close ends all waits for a slot.
func (s *slots) close() {
	s.Lock()
	defer s.Unlock()
	s.closed, s.wanted = true, nil
	s.freed.Broadcast()
}
