package engine

import "github.com/beanpole-mq/beanpole/internal/engine/heap"

// A timer is the time at which Tick must examine a tube or a session. It can be too
// early, but never too late. Moving the timer on every reserve would cost more than one
// unnecessary examination.
//
// I13. The timer of a tube is not later than its first delayed job and the end of its
// pause. The timer of a session is not later than the first end of a TTR of its jobs.
// While the session waits, it is not later than its timeout and that end less the margin.
// An operation that continues in the next turn sets its timer to the time of this turn,
// so that it follows all earlier events. A removed tube or session has no timer.
type timer struct {
	at  int64  // ns
	pos int    // place in the heap of timers, or -1
	age uint64 // number of tubes and sessions created earlier; breaks ties

	tube *tube // exactly one of tube and sess is set
	sess *Session
}

// newTimer returns an unset timer of a tube or of a session.
func (e *Engine) newTimer(t *tube, s *Session) timer {
	e.timersMade++
	return timer{pos: -1, age: e.timersMade, tube: t, sess: s}
}

// next returns the time at which Tick must examine the owner of the timer.
func (t *timer) next() int64 {
	if t.tube != nil {
		return t.tube.next()
	}
	return t.sess.next()
}

// arm makes the timer fire at the given time or earlier.
func (e *Engine) arm(t *timer, at int64) {
	switch {
	case at == Never:
	case t.pos < 0:
		t.at = at
		heap.Push(&e.timers, t)
	case at < t.at:
		t.at = at
		heap.Fix(e.timers, t.pos)
	}
}

// rearm sets the timer to exactly the given time.
func (e *Engine) rearm(t *timer, at int64) {
	switch {
	case at == Never:
		e.disarm(t)
	case t.pos >= 0:
		t.at = at
		heap.Fix(e.timers, t.pos)
	default:
		e.arm(t, at)
	}
}

func (e *Engine) disarm(t *timer) {
	if t.pos >= 0 {
		heap.Remove(&e.timers, t.pos)
	}
}

// timers is the heap of all set timers.
type timers []*timer

// Before implements heap.Element. At the same time, tubes precede sessions: as in
// beanstalkd, a job that becomes ready reaches a worker whose wait would time out.
// Otherwise the older timer is first, so that the order does not depend on the history of
// the heap.
func (t *timer) Before(o *timer) bool {
	if t.at != o.at {
		return t.at < o.at
	}
	if (t.tube != nil) != (o.tube != nil) {
		return t.tube != nil
	}
	return t.age < o.age
}

// Moved implements heap.Element.
func (t *timer) Moved(place int) { t.pos = place }
