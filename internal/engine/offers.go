package engine

import "github.com/beanpole-mq/beanpole/internal/engine/heap"

// A session that watches many tubes has an index: a reserve does not look at each
// tube, and the session does not wait in the list of each. Instead, a tube notifies
// its subscribers when it begins to offer a job, or a better one than before. A
// subscriber is notified once, and subscribes again when it looks at the tube. So
// the cost of each step here belongs to a job that became ready, or to a reserve.
//
// A tube that notifies a waiting session puts the watch into the tube's queue; the
// session that has waited longest gets the job. When the wait of a session ends its
// watches stay in the queues. A stale one is removed when it comes to the front.
//
// I16. Each watch of a session with an index is in one state: subscribed (among the
// subscribers of its tube), queued (in the queue of its tube), or pending (among
// those that its session has to look at). No watch of a tube that offers a job is
// queued. A session that waits has no pending watch and no candidate.
//
// I17. A subscribed watch of a tube that offers a job is a candidate of its
// session, with a rank not after that job.
type watchState uint8

const (
	unindexed watchState = iota // the session has no index
	pending
	subscribed
	queued
)

// offers reports whether a reserve from the tube would get a job.
func (t *tube) offers() bool { return !t.shut && t.ready.n > 0 }

// notify tells the subscribers of a tube that it offers a job, or a better one than
// before.
func (e *Engine) notify(t *tube) {
	for w := t.subscribers.first; w != nil; w = t.subscribers.first {
		e.turnWork++
		t.subscribers.remove(w)
		if w.sess.waiting {
			w.state = queued
			w.rank = rank{hi: w.sess.waitNumber}
			heap.Push(&t.queue, w)
		} else {
			w.sess.index.addPending(w)
		}
	}
}

// addPending notes that the session has to look at a tube.
func (x *watchIndex) addPending(w *watch) {
	w.state = pending
	x.pending.push(w)
}

// firstWaiter returns the session that has waited longest for a job of a tube
// that has one, or nil.
func (e *Engine) firstWaiter(t *tube) *Session {
	var first *Session
	if t.waiters.first != nil {
		first = t.waiters.first.sess
	}
	for len(t.queue) > 0 {
		w := t.queue[0]
		switch s := w.sess; {
		case !s.waiting: // its wait is over
			heap.Pop(&t.queue)
			s.index.addPending(w)
		case w.rank.hi != s.waitNumber: // queued in an earlier wait
			w.rank.hi = s.waitNumber
			heap.Fix(t.queue, 0)
		case first == nil || s.waitNumber < first.waitNumber:
			return s
		default:
			return first
		}
		e.turnWork++
	}
	return first
}

// search returns the ready job with the smallest (pri, id), or none. If done is false the
// turn has no time for more, and the next call continues.
//
// Notifications that come faster than it can look do not keep it busy without end: when
// it has looked as often as there are tubes, it chooses from its candidates.
func (e *Engine) search(s *Session) (best slot, done bool) {
	x := s.index
	for n := 0; !e.enough(n); n++ {
		w := x.pending.first
		switch {
		case w != nil && (x.looks < len(s.watches) || len(x.candidates) == 0):
			x.pending.remove(w)
			w.state = subscribed
			w.tube.subscribers.push(w)
		case len(x.candidates) == 0:
			return none, true
		default:
			w = x.candidates[0]
			if w.tube.offers() && w.tube.ready.rank() == w.rank {
				return w.tube.ready.top(), true
			}
		}
		e.turnWork++
		x.inspect(w)
	}
	return none, false
}

// inspect updates the job that a tube offers.
func (x *watchIndex) inspect(w *watch) {
	x.looks++
	switch {
	case !w.tube.offers():
		if w.pos >= 0 {
			heap.Remove(&x.candidates, w.pos)
		}
	case w.pos < 0:
		w.rank = w.tube.ready.rank()
		heap.Push(&x.candidates, w)
	default:
		w.rank = w.tube.ready.rank()
		heap.Fix(x.candidates, w.pos)
	}
}

// remove removes a watch from the list or queue where it is.
func (x *watchIndex) remove(w *watch) {
	switch w.state {
	case pending:
		x.pending.remove(w)
	case subscribed:
		w.tube.subscribers.remove(w)
	case queued:
		heap.Remove(&w.tube.queue, w.pos)
	}
	if w.pos >= 0 {
		heap.Remove(&x.candidates, w.pos)
	}
	w.state = unindexed
}

// A rank orders watches: candidates by the (pri, id) of the job that was seen in
// the tube, those in a queue by the number of the wait.
type rank struct {
	hi uint64
	lo uint32
}

// rank returns the rank of the first job of a queue.
func (q *queue) rank() rank {
	x, _ := q.first()
	return rank{x.hi, x.lo}
}

func (a rank) before(b rank) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

// watchHeap is a heap of watches by rank. A watch is in one at most.
type watchHeap []*watch

// Before implements heap.Element.
func (w *watch) Before(o *watch) bool { return w.rank.before(o.rank) }

// Moved implements heap.Element.
func (w *watch) Moved(place int) { w.pos = place }
