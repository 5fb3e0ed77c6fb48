package engine

import "github.com/beanpole-mq/beanpole/internal/engine/heap"

// A queueView contains the jobs of a queue at one moment. It has a snapshot of the heap
// and a part of each run. Jobs are never added to that part, and the iteration skips jobs
// that have left.
type queueView struct {
	heap jobHeap
	runs []runWalk
}

// A runWalk iterates over a part of a run.
type runWalk struct {
	runs   *runs
	place  uint8
	serial uint64 // if the run has another serial, all jobs of the part are gone
	at     uint64 // current position in the run
	end    uint64 // number after the part
	x      entry  // entry of the job at seen
	seen   uint64
}

// view returns the jobs after a cursor. It can also return jobs of the heap before the
// cursor.
func (q *queue) view(jobs *jobSlab, after Cursor) queueView {
	v := queueView{heap: jobHeap{pages: q.heap.snapshot(), n: q.heap.n}}
	if q.runs == nil {
		return v
	}
	for _, k := range q.runs.order {
		r := &q.runs.all[k]
		v.runs = append(v.runs, runWalk{q.runs, k, r.serial, r.seek(jobs, after), r.end, entry{}, r.end})
	}
	return v
}

// cost returns the units of work of creating the view.
func (v *queueView) cost() int { return len(v.heap.pages)/looksPerUnit + len(v.runs)*seekWork }

// add adds a job to an unordered view.
func (v *queueView) add(x entry) { v.heap.append(x) }

// seek returns the number of the first job after a cursor, or the end.
func (r *run) seek(jobs *jobSlab, after Cursor) uint64 {
	if after.before(r.first) {
		return r.head
	}
	// The first job of chunk low is not after the cursor; the first job of chunk high is.
	low, high := 0, len(r.chunks)
	for low+1 < high {
		mid := (low + high) / 2
		k := mid
		for k < high && r.chunks[k].n == 0 {
			k++
		}
		if k < high && !after.before(jobs.entryAt(r.chunks[k].first())) {
			low = k
		} else {
			high = mid
		}
	}
	at := max((r.head/chunkSlots+uint64(low))*chunkSlots, r.head)
	for end := min((r.head/chunkSlots+uint64(low)+1)*chunkSlots, r.end); at < end; at++ {
		if i := r.chunks[low].slots[at%chunkSlots]; i != none && after.before(jobs.entryAt(i)) {
			break
		}
	}
	return at
}

// first returns the first job of a chunk that has jobs.
func (c *chunk) first() slot {
	for _, i := range c.slots {
		if i != none {
			return i
		}
	}
	return none
}

// next moves to the first remaining job, and reports whether there is one.
func (w *runWalk) next(jobs *jobSlab) bool {
	r := &w.runs.all[w.place]
	if r.serial != w.serial {
		return false
	}
	for w.at = max(w.at, r.head); w.at < w.end; {
		c := &r.chunks[w.at/chunkSlots-r.head/chunkSlots]
		if c.n == 0 {
			w.at = (w.at/chunkSlots + 1) * chunkSlots
			continue
		}
		if i := c.slots[w.at%chunkSlots]; i != none {
			if w.seen != w.at {
				w.x, w.seen = jobs.entryAt(i), w.at
			}
			return true
		}
		w.at++
	}
	return false
}

// firstRun returns the walk whose next job is the first of all runs, or nil.
func (v *queueView) firstRun(jobs *jobSlab) *runWalk {
	var first *runWalk
	for k := range v.runs {
		if w := &v.runs[k]; w.next(jobs) && (first == nil || w.x.before(first.x)) {
			first = w
		}
	}
	return first
}

// A queueWalk iterates over a view in order. For the heap, it stores the places whose
// parents it has passed.
type queueWalk struct {
	queueView
	places []heapPlace
}

// A heapPlace is a position in a queue's heap, with its entry.
type heapPlace struct {
	*entry
	at int
}

// Before implements heap.Element.
func (p heapPlace) Before(o heapPlace) bool { return p.before(*o.entry) }

// Moved implements heap.Element.
func (p heapPlace) Moved(int) {}

func newQueueWalk(v queueView) queueWalk {
	w := queueWalk{queueView: v}
	w.open(0)
	return w
}

// next returns the next job and advances; ok is false at the end. A job of the heap can
// have left the queue.
func (w *queueWalk) next(jobs *jobSlab) (x entry, ok bool) {
	r := w.firstRun(jobs)
	switch {
	case len(w.places) > 0 && (r == nil || w.places[0].before(r.x)):
		p := heap.Pop(&w.places)
		for c := 4*p.at + 1; c <= 4*p.at+4; c++ {
			w.open(c)
		}
		return *p.entry, true
	case r != nil:
		r.at++
		return r.x, true
	}
	return entry{}, false
}

// open adds position i of the heap, if it exists.
func (w *queueWalk) open(i int) {
	if i < w.heap.n {
		heap.Push(&w.places, heapPlace{w.heap.at(i), i})
	}
}
