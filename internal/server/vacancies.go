package server

import (
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/conversation"
)

// A client that has closed a connection and opens another may be accepted before the
// server has looked at the first one again. So where there are as many connections as
// there may be, a new one waits a moment for one to end.

const (
	// placeTime is how long a new connection waits for a place.
	placeTime = time.Second

	// maxForPlace is how many wait at most; others are refused at once.
	maxForPlace = 128
)

// WaitingRoom returns how many new connections may wait for a place at most, where there may be
// maxConns connections, 1 or more. Each has a descriptor while it waits.
func WaitingRoom(maxConns int) int { return min(maxForPlace, (maxConns+7)/8) }

// vacancies is how those who wait for a place hear that a connection has ended.
type vacancies struct {
	mu      sync.Mutex
	waiting int           // how many wait
	ended   chan struct{} // closed when the next connection ends
	wake    func()        // tells the loop that accepts; nil: there is none
}

// tell says how to tell the loop that accepts.
func (v *vacancies) tell(wake func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wake = wake
}

// isFull reports whether an error says that there are too many connections.
func isFull(err error) bool { return err == errFull || err == access.ErrAddressFull }

// wait lets one more wait, of so many at most, and reports whether that is possible.
func (v *vacancies) wait(most int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.waiting >= most {
		return false
	}
	v.waiting++
	return true
}

// next returns a channel that is closed when a connection ends.
func (v *vacancies) next() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended == nil {
		v.ended = make(chan struct{})
	}
	return v.ended
}

// done says that one waits no longer.
func (v *vacancies) done() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waiting--
}

// announce says that a connection has ended.
func (v *vacancies) announce() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended != nil {
		close(v.ended)
		v.ended = nil
	}
	if v.waiting > 0 && v.wake != nil {
		v.wake()
	}
}

// look makes the loop that accepts look at who waits: another loop may have accepted him, and it would sleep on.
func (v *vacancies) look() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wake()
}

// waitForPlace counts a connection, as soon as there is a place for it.
func (s *Server) waitForPlace(c *netConn, e access.Evidence) error {
	err := s.addNetConn(c, e)
	if !isFull(err) || !s.vacancies.wait(WaitingRoom(s.opt.MaxConns)) {
		return err
	}
	defer s.vacancies.done()
	timeout := time.NewTimer(placeTime)
	defer timeout.Stop()
	for {
		ended := s.vacancies.next()
		if err = s.addNetConn(c, e); !isFull(err) {
			return err
		}
		select {
		case <-ended:
		case <-timeout.C:
			return s.addNetConn(c, e) // one may have ended at the same time
		case <-s.stopped:
			return conversation.ErrStopped
		}
	}
}
