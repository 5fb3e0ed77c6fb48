package engine

import "github.com/beanpole-mq/beanpole/internal/engine/heap"

// A viewSearch finds the jobs of a view after a cursor, in order: those of its runs up to
// the nth job of its heap, or to the end.
//
// Jobs in runs are found at once. The heap is ordered only by parent, so the search goes
// down from the top, level by level, and skips the children of jobs after the nth. The
// cost grows with the number of jobs up to the nth: the last page of a million jobs in a
// heap takes about five milliseconds. The search cannot skip jobs before the cursor.
type viewSearch struct {
	first firstEntries // first entries of the heap

	// Progress.
	looks    int    // number of entries that were looked at
	ahead    []span // places to examine, in order; few, because most are adjacent
	sorting  bool   // all were looked at
	over     bool   // the first entries are in order
	reported int    // number of reported entries
}

// A span is a range of adjacent places in a heap.
type span struct{ from, to uint32 }

// lookStep is the number of heap entries in a step of a search.
const lookStep = 256

func newViewSearch(after Cursor, n int) viewSearch {
	return viewSearch{first: firstEntries{after: after, n: n}}
}

// step continues the search and returns the units of work. It searches an unordered heap
// completely.
func (s *viewSearch) step(v *queueView, ordered bool) (work int) {
	if s.sorting {
		s.over = !s.first.sort()
		return 1
	}
	return s.look(&v.heap, ordered)
}

// next returns the next job and advances. ok is false if there is none up to the nth of
// the heap.
func (s *viewSearch) next(v *queueView, jobs *jobSlab) (x entry, ok bool) {
	r := v.firstRun(jobs)
	if s.reported < len(s.first.entries) {
		if x := s.first.entries[s.reported].entry; r == nil || x.before(r.x) {
			s.reported++
			return x, true
		}
	} else if !s.atEnd() {
		r = nil // the next job of the heap can precede it
	}
	if r == nil {
		return entry{}, false
	}
	r.at++
	return r.x, true
}

// atEnd reports whether all jobs of the heap have been found.
func (s *viewSearch) atEnd() bool { return len(s.first.entries) < s.first.n }

// last returns the cursor after the last job found in the heap.
func (s *viewSearch) last() Cursor { return s.first.entries[len(s.first.entries)-1].cursor() }

// look examines some entries of the heap.
func (s *viewSearch) look(h *jobHeap, ordered bool) (work int) {
	if s.looks == 0 {
		s.ahead = []span{{0, uint32(min(h.n, 1))}}
	}
	parents := (h.n + 2) / 4 // places with children; most entries are leaves
	work = lookStep / looksPerUnit
	for end := s.looks + lookStep; s.looks < end; {
		if len(s.ahead) == 0 {
			s.sorting, s.first.unsorted = true, s.first.entries
			return work
		}
		from, to := int(s.ahead[0].from), int(s.ahead[0].to)
		if from == to {
			s.ahead = s.ahead[1:]
			continue
		}
		page, at := h.pages[from/entriesPerPage], from%entriesPerPage
		entries := page[at:min(at+to-from, at+end-s.looks, len(page))]
		for i, x := range entries {
			after := s.first.after.before(x)
			taken := after && s.first.show(x)
			if taken {
				work++
			}
			if (!after || taken || !ordered) && from+i < parents {
				s.open(from+i, h.n)
			}
		}
		s.ahead[0].from += uint32(len(entries))
		s.looks += len(entries)
	}
	return work
}

// open adds the children of an entry in a heap of n to the entries to examine.
func (s *viewSearch) open(parent, n int) {
	children := span{uint32(4*parent + 1), uint32(min(4*parent+5, n))}
	if last := len(s.ahead) - 1; s.ahead[last].to == children.from {
		s.ahead[last].to = children.to
	} else {
		s.ahead = append(s.ahead, children)
	}
}

// firstEntries collects the first n entries after a cursor. Call show with all entries
// after it, in any order.
type firstEntries struct {
	after    Cursor
	n        int
	entries  []lastFirst // a heap or, after sort, in order
	unsorted []lastFirst // those at the beginning of entries that are a heap still
}

// lastFirst orders a heap so that its first element is the last entry.
type lastFirst struct{ entry }

// Before implements heap.Element.
func (x lastFirst) Before(y lastFirst) bool { return y.before(x.entry) }

// Moved implements heap.Element.
func (lastFirst) Moved(int) {}

// show adds an entry if it is one of the first n so far.
func (f *firstEntries) show(x entry) (taken bool) {
	switch {
	case len(f.entries) < f.n:
		heap.Push(&f.entries, lastFirst{x})
	case x.before(f.entries[0].entry):
		f.entries[0] = lastFirst{x}
		heap.Fix(f.entries, 0)
	default:
		return false
	}
	return true
}

// sort puts one entry into its place, and reports whether more remain.
func (f *firstEntries) sort() (more bool) {
	if len(f.unsorted) == 0 {
		return false
	}
	last := heap.Pop(&f.unsorted)
	f.entries[len(f.unsorted)] = last
	return len(f.unsorted) > 0
}
