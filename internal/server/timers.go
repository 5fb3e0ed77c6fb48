package server

import (
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/engine/heap"
)

// timers is a heap of the sockets whose conversations need Advance, by time. A time can
// be too early, but never too late: if a conversation now needs Advance at a later time,
// its entry stays until the earlier time.
type timers []*socket

// A timer is the entry of a socket in timers.
type timer struct {
	at    int64 // time in ns
	index int   // index in the heap, from 1; 0 if absent
}

// Before implements heap.Element.
func (s *socket) Before(o *socket) bool { return s.timer.at < o.timer.at }

// Moved implements heap.Element.
func (s *socket) Moved(index int) { s.timer.index = index + 1 }

// set makes take return the socket at the given time or earlier.
func (t *timers) set(s *socket, at int64) {
	switch {
	case at == engine.Never:
	case s.timer.index == 0:
		s.timer.at = at
		heap.Push(t, s)
	case at < s.timer.at:
		s.timer.at = at
		heap.Fix(*t, s.timer.index-1)
	}
}

// remove removes a socket.
func (t *timers) remove(s *socket) {
	if s.timer.index > 0 {
		heap.Remove(t, s.timer.index-1)
	}
}

// take removes the sockets whose timers have fired, and calls f for each.
func (t *timers) take(now int64, f func(*socket)) {
	for len(*t) > 0 && (*t)[0].timer.at <= now {
		f(heap.Pop(t))
	}
}

// until returns the duration until the first timer fires. A negative duration means
// never.
func (t timers) until(now int64) time.Duration {
	if len(t) == 0 {
		return -1
	}
	return time.Duration(max(0, t[0].timer.at-now))
}
