package engine

import (
	"math"
	"math/bits"
	"slices"
)

// A jobHeap is a priority queue of jobs: a heap in which each node has four children.
// Each job stores its position, so that any job can be removed. The heap grows and
// shrinks by pages, so that no push copies a large array. The first page starts small,
// because many heaps contain few jobs.
//
// Entries contain the keys, so a comparison reads no job record.
//
// I12. The job of entry i has pos i. No entry precedes its parent, except in the heap of
// a closed session.
type jobHeap struct {
	pages  [][]entry
	n      int
	shared *sharedPages // nil if there are none
}

// sharedPages marks the pages that a snapshot shares. The heap copies a shared page
// before it writes to it.
type sharedPages struct {
	byPage []bool // by number of the page: is it shared?
	left   int    // number of shared pages
}

const entriesPerPage = 1024

// An entry is a job with its key. The key has two parts: (pri, id) for ready jobs, (due,
// id) for the others. The second form contains only the low 32 bits of the id, which
// break ties within a nanosecond.
type entry struct {
	hi   uint64
	lo   uint32
	slot slot
}

func (a entry) before(b entry) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

func readyEntry(i slot, j *job) entry {
	return entry{uint64(j.pri)<<32 | j.id>>32, uint32(j.id), i}
}

func dueEntry(i slot, j *job, due int64) entry {
	return entry{uint64(due) ^ 1<<63, uint32(j.id), i} // the flipped sign orders negative times first
}

// entryOf returns the entry of a job in the queue of its state.
func (s *jobSlab) entryOf(i slot, j *job) entry {
	if j.state() == Ready {
		return readyEntry(i, j)
	}
	return dueEntry(i, j, s.when(j))
}

// entryAt is entryOf for the job in a slot.
func (s *jobSlab) entryAt(i slot) entry { return s.entryOf(i, s.at(i)) }

// ttrEnds returns the time at which the TTR of a reserved job expires. Only the heap
// stores it, because touches move it.
func (e *Engine) ttrEnds(j *job) int64 { return e.holderOf(j).reserved.at(int(j.pos)).dueOf() }

// dueOf returns the due time of an entry created by dueEntry.
func (a entry) dueOf() int64 { return int64(a.hi ^ 1<<63) }

func (h *jobHeap) at(i int) *entry { return &h.pages[uint(i)/entriesPerPage][uint(i)%entriesPerPage] }

// top returns the first job, or none if the heap is empty.
func (h *jobHeap) top() slot {
	if h.n == 0 {
		return none
	}
	return h.pages[0][0].slot
}

// due returns the time at which the first job of a heap ordered by due time is due, or
// Never.
func (h *jobHeap) due() int64 {
	if h.n == 0 {
		return Never
	}
	return h.pages[0][0].dueOf()
}

func (h *jobHeap) push(jobs *jobSlab, x entry) {
	h.append(x)
	if h.n > 1 {
		h.up(jobs, h.n-1, x)
	} else {
		jobs.at(x.slot).pos = 0
	}
}

// append adds x at the end, regardless of order.
func (h *jobHeap) append(x entry) {
	page := int(uint(h.n) / entriesPerPage)
	switch {
	case page == len(h.pages) && page == 0:
		h.pages = append(h.pages, nil)
	case page == len(h.pages):
		h.pages = append(h.pages, make([]entry, 0, entriesPerPage))
	}
	if h.shared != nil {
		h.unshare(page)
		h.unsharePath(h.n)
	}
	p := &h.pages[page]
	*p = append(*p, x)
	h.n++
}

// remove removes the job at position i.
func (h *jobHeap) remove(jobs *jobSlab, i int) {
	last := h.takeLast()
	if i == h.n {
		return
	}
	if h.shared != nil {
		h.unsharePath(i)
	}
	if parent := (i - 1) / 4; i > 0 && last.before(*h.at(parent)) {
		h.up(jobs, i, last)
	} else {
		h.down(jobs, i, last)
	}
}

// removeLoosely removes the job at position i without keeping the order of the others. It
// is for a heap whose first job no longer matters.
func (h *jobHeap) removeLoosely(jobs *jobSlab, i int) {
	if last := h.takeLast(); i < h.n {
		h.unshare(i / entriesPerPage)
		h.set(jobs, i, last)
	}
}

// takeLast removes and returns the last entry.
func (h *jobHeap) takeLast() entry {
	h.n--
	page, k := &h.pages[uint(h.n)/entriesPerPage], uint(h.n)%entriesPerPage
	last := (*page)[k]
	*page = (*page)[:k]
	if len(h.pages) > 1 {
		h.trim()
	}
	return last
}

// removalWork returns the additional units of work of removing a job. Each level below
// the first page costs two cache misses, and stands for two bits of the position.
func (h *jobHeap) removalWork() int { return bits.Len(uint(h.n) / entriesPerPage) }

// trim frees empty pages, except one after the last page in use.
func (h *jobHeap) trim() {
	if used := (h.n + entriesPerPage - 1) / entriesPerPage; len(h.pages) > used+1 {
		last := len(h.pages) - 1
		h.pages[last] = nil
		h.pages = h.pages[:last]
		if h.shared != nil {
			h.markOwn(last)
		}
	}
}

// snapshot returns the current entries, which never change.
func (h *jobHeap) snapshot() [][]entry {
	pages := slices.Clone(h.pages)
	h.shared = &sharedPages{byPage: make([]bool, len(pages)), left: len(pages)}
	for i := range pages {
		h.shared.byPage[i] = true
	}
	if len(pages) == 0 {
		h.shared = nil
	}
	return pages
}

// unshare makes a private copy of a page if the page exists and is shared.
func (h *jobHeap) unshare(page int) {
	if h.shared != nil && page < len(h.shared.byPage) && h.shared.byPage[page] {
		own := make([]entry, len(h.pages[page]), cap(h.pages[page]))
		copy(own, h.pages[page])
		h.pages[page] = own
		h.markOwn(page)
	}
}

// unsharePath unshares the pages to which up and down can write from position i: those on
// the path to the root, and those on the path down along the smallest children.
func (h *jobHeap) unsharePath(i int) {
	for k := i; h.shared != nil; k = (k - 1) / 4 {
		h.unshare(k / entriesPerPage)
		if k == 0 {
			break
		}
	}
	for k := i; h.shared != nil && k < h.n; {
		h.unshare(k / entriesPerPage)
		least := 4*k + 1
		for c := least + 1; c < min(4*k+5, h.n); c++ {
			if h.at(c).before(*h.at(least)) {
				least = c
			}
		}
		k = least
	}
}

// markOwn records that a page is no longer shared.
func (h *jobHeap) markOwn(page int) {
	if page < len(h.shared.byPage) && h.shared.byPage[page] {
		h.shared.byPage[page] = false
		if h.shared.left--; h.shared.left == 0 {
			h.shared = nil
		}
	}
}

// up places x at position i or above.
func (h *jobHeap) up(jobs *jobSlab, i int, x entry) {
	for i > 0 {
		parent := (i - 1) / 4
		p := *h.at(parent)
		if !x.before(p) {
			break
		}
		h.set(jobs, i, p)
		i = parent
	}
	h.set(jobs, i, x)
}

// down places x at position i or below.
func (h *jobHeap) down(jobs *jobSlab, i int, x entry) {
	for {
		first := 4*i + 1
		if first >= h.n {
			break
		}
		least, least4 := first, *h.at(first)
		for c := first + 1; c < min(first+4, h.n); c++ {
			if e := *h.at(c); e.before(least4) {
				least, least4 = c, e
			}
		}
		if !least4.before(x) {
			break
		}
		h.set(jobs, i, least4)
		i = least
	}
	h.set(jobs, i, x)
}

func (h *jobHeap) set(jobs *jobSlab, i int, x entry) {
	*h.at(i) = x
	jobs.at(x.slot).pos = uint32(i)
}

// Never is a time that never comes. Forever is a timeout that never ends.
const (
	Never   = math.MaxInt64
	Forever = int64(-1)
)
