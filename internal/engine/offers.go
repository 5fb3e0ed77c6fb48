package engine

import "container/heap"

// A session that watches many tubes does not look at each of them in a reserve,
// and does not wait in the list of each. Instead, its tubes tell it when they
// begin to offer a job, or a better one than before, and only once until it has
// looked: so every step here was paid for by a job that became ready, or by a
// reserve.
//
// While such a session waits, it is found by the tubes. One that tells its
// watches puts those whose session waits into a queue; who of them has waited
// longest gets the job. A session whose wait ends takes itself out of no queue:
// what is left there is found out when it comes to the front.
//
// I16. Each watch of a session with an index is in one place: among those that
// its tube tells (told), in its tube's queue (queued), or among the news of its
// session (news). Of a tube that offers a job none is queued; of a session that
// waits none is news, and none found.
//
// I17. A told watch of a tube that offers a job is among the found ones of its
// session, with a rank not behind that job.
type place uint8

const (
	nowhere place = iota // the session has no index
	news
	told
	queued
)

// offers reports whether a tube has a job for who comes.
func (t *tube) offers() bool { return !t.paused && t.ready.n > 0 }

// tell lets the sessions that watch a tube, and many others, know that it offers
// a job, or a better one than before.
func (e *Engine) tell(t *tube) {
	for w := t.told.first; w != nil; w = t.told.first {
		e.work++
		t.told.remove(w)
		if w.sess.waiting {
			w.place = queued
			w.rank = rank{hi: w.sess.waitNum}
			heap.Push(&t.queue, w)
		} else {
			w.sess.index.hear(w)
		}
	}
}

// hear notes that a tube has something to look at.
func (x *watchIndex) hear(w *watch) {
	w.place = news
	x.news.push(w)
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
		case !s.waiting: // any more
			heap.Pop(&t.queue)
			s.index.hear(w)
		case w.rank.hi != s.waitNum: // it was another wait
			w.rank.hi = s.waitNum
			heap.Fix(&t.queue, 0)
		case first == nil || s.waitNum < first.waitNum:
			return s
		default:
			return first
		}
		e.work++
	}
	return first
}

// search returns the tube whose first ready job has the smallest (pri, id), or
// nil if there is none. Unless done it has looked at as many tubes as a turn
// should bear, and goes on when it is called again.
//
// News that come faster than it can look do not keep it for ever: when it has
// looked as often as there are tubes, it makes do with what it has found.
func (e *Engine) search(s *Session) (best *tube, done bool) {
	x := s.index
	for n := 0; !e.enough(n); n++ {
		w := x.news.first
		switch {
		case w != nil && (x.looks < len(s.watches) || len(x.found) == 0):
			x.news.remove(w)
			w.place = told
			w.tube.told.push(w)
		case len(x.found) == 0:
			return nil, true
		default:
			w = x.found[0]
			if w.tube.offers() && w.tube.ready.at(0).rank() == w.rank {
				return w.tube, true
			}
		}
		e.work++
		x.look(w)
	}
	return nil, false
}

// look finds out what a tube offers now.
func (x *watchIndex) look(w *watch) {
	x.looks++
	switch {
	case !w.tube.offers():
		if w.pos >= 0 {
			heap.Remove(&x.found, w.pos)
		}
	case w.pos < 0:
		w.rank = w.tube.ready.at(0).rank()
		heap.Push(&x.found, w)
	default:
		w.rank = w.tube.ready.at(0).rank()
		heap.Fix(&x.found, w.pos)
	}
}

// forget takes a watch out of wherever it is.
func (x *watchIndex) forget(w *watch) {
	switch w.place {
	case news:
		x.news.remove(w)
	case told:
		w.tube.told.remove(w)
	case queued:
		heap.Remove(&w.tube.queue, w.pos)
	}
	if w.pos >= 0 {
		heap.Remove(&x.found, w.pos)
	}
	w.place = nowhere
}

// A rank is what a watch is ordered by: among those found the (pri, id) of the
// job that was seen there, in a queue the number of the wait.
type rank struct {
	hi uint64
	lo uint32
}

func (a entry) rank() rank { return rank{a.hi, a.lo} }

func (a rank) before(b rank) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

// watchHeap is a heap of watches by rank. A watch is in one at most.
type watchHeap []*watch

func (h watchHeap) Len() int { return len(h) }

func (h watchHeap) Less(i, j int) bool { return h[i].rank.before(h[j].rank) }

func (h watchHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

func (h *watchHeap) Push(x any) {
	w := x.(*watch)
	w.pos = len(*h)
	*h = append(*h, w)
}

func (h *watchHeap) Pop() any {
	old := *h
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	w.pos = -1
	return w
}
