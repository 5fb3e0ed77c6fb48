package engine

import "github.com/beanpole-mq/beanpole/internal/engine/heap"

// A timer is the moment at which Tick has to look at a tube or a session. It may
// be too early, never too late: it would cost more to move the timer on every
// reserve than to look once in vain.
//
// I13. The timer of a tube is not later than its first delayed job and the end
// of its pause. That of a session is not later than the first TTR it holds and,
// while it waits, its timeout and the first TTR less the margin. An operation that
// did not end in a turn sets the timer to the moment of that turn: so it goes on
// in the next, after what was due before. A tube or session that is gone has no
// timer set.
type timer struct {
	at  int64  // ns
	pos int    // place in the heap of timers, or -1
	age uint64 // number of tubes and sessions made before; breaks ties

	tube *tube    // exactly one
	sess *Session // of the two
}

// newTimer returns a timer that is not set, for a tube or for a session.
func (e *Engine) newTimer(t *tube, s *Session) timer {
	e.timersMade++
	return timer{pos: -1, age: e.timersMade, tube: t, sess: s}
}

// next returns when Tick has to look at the owner of the timer.
func (t *timer) next() int64 {
	if t.tube != nil {
		return t.tube.next()
	}
	return t.sess.next()
}

// arm makes sure that the timer goes off at the given time or before.
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

// timers is the heap of all timers that are set.
type timers []*timer

// Before implements heap.Element. At the same moment tubes go before sessions: as in
// beanstalkd, a job that comes due reaches a worker whose wait would time out at that
// moment. Otherwise the older goes first, so that the order does not depend on the
// history of the heap.
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
