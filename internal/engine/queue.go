package engine

import (
	"iter"
	"slices"
	"sort"
)

// A queue contains jobs in the order of their keys. It is a B+tree of a fixed height:
// pages of references to leaves, and leaves of slots. The job records contain the keys.
//
// Most jobs arrive in order, and most leave at the head. A job whose key is after all
// others is appended to the last leaf. Only a job between others splits a leaf. So
// operations at both ends touch only a few cache lines, even in a long queue, and a job
// takes little more than 8 bytes.
//
// I19. n counts the jobs of the leaves. head and tail are the first and the last leaf.
// Only the leaf of an empty queue is empty.
//
// I20. The keys of the jobs ascend, and none is after last. None is before low of its
// page or leaf, except in the first one, and none is at or after low of the next. A job's
// pos is the number of its leaf.
type queue struct {
	jobs       *jobSlab
	n          int
	last       key // key of the last appended job, even if that job has left
	head, tail *leaf
	pages      []leafPage // nil before the first job
}

// A leafPage refers to some leaves.
type leafPage struct {
	low    key
	leaves []leafRef
}

// A leafRef refers to a leaf.
type leafRef struct {
	low    key
	number uint32
}

// A leaf contains its jobs in entries[from:].
type leaf struct {
	entries []entry
	number  uint32
	from    uint8
}

// An entry is a job with a hint, the upper half of its key. With the hints, a search
// reads few records.
type entry struct {
	hint uint32
	slot slot
}

const (
	leafJobs   = 64
	pageLeaves = 512
)

// A key orders the jobs of a queue: ready jobs by priority and id, other jobs by their
// due time, or rank in the order of burying, and id.
type key struct{ first, id uint64 }

// Before reports whether a key precedes another, as heap.Element requires.
func (k key) Before(o key) bool { return k.first < o.first || k.first == o.first && k.id < o.id }

func (k key) entry(i slot) entry { return entry{uint32(k.first >> 32), i} }

// keyOf returns the key of a job in the queue of its state.
func (s *jobSlab) keyOf(j *job) key {
	switch j.state() {
	case Ready:
		return readyKey(j)
	case Reserved:
		return dueKey(s.held(j).due, j.id)
	}
	return dueKey(s.when(j), j.id)
}

// keyAt is keyOf for the job in a slot.
func (s *jobSlab) keyAt(i slot) key { return s.keyOf(s.at(i)) }

func readyKey(j *job) key { return key{uint64(j.pri) << 32, j.id} }

// dueKey returns the key of a job with a due time or rank. It flips the sign, so that
// negative times come first.
func dueKey(due int64, id uint64) key { return key{uint64(due) ^ 1<<63, id} }

// top returns the first job, or none if the queue is empty.
func (q *queue) top() slot {
	if q.n == 0 {
		return none
	}
	return q.head.entries[q.head.from].slot
}

// due returns the due time of the first job in a queue ordered by time, or Never.
func (q *queue) due() int64 {
	if q.n == 0 {
		return Never
	}
	return int64(q.jobs.keyAt(q.top()).first ^ 1<<63)
}

// push adds a job with a key.
func (q *queue) push(k key, i slot, j *job) {
	switch {
	case q.pages == nil:
		q.head = q.jobs.newLeaf()
		q.tail = q.head
		q.pages = []leafPage{{leaves: []leafRef{{number: q.head.number}}}}
	case k.Before(q.last):
		q.pushBetween(k, i, j)
		return
	case len(q.tail.entries) == leafJobs:
		page := len(q.pages) - 1
		q.tail = q.insert(page, len(q.pages[page].leaves), k)
	}
	q.tail.entries = append(q.tail.entries, k.entry(i))
	j.pos = q.tail.number
	q.last = k
	q.n++
}

// pushBetween adds a job that can precede other jobs.
func (q *queue) pushBetween(k key, i slot, j *job) {
	page, at := q.find(k)
	l := q.leaf(page, at)
	place := l.find(q.jobs, k)
	if l.from == 0 && len(l.entries) == leafJobs {
		low, next := k, place // the first key of the next leaf, and its place
		if place < leafJobs {
			next = leafJobs / 2
			low = q.jobs.keyAt(l.entries[next].slot)
		}
		after := q.insert(page, at+1, low)
		if l == q.tail {
			q.tail = after
		}
		l.split(q.jobs, after, next)
		if !k.Before(low) {
			l, place = after, place-next
		}
	}
	l.insert(place, k.entry(i))
	j.pos = l.number
	q.n++
}

// remove removes a job.
func (q *queue) remove(i slot, j *job) {
	l := q.jobs.leaves.at(j.pos)
	l.remove(q.jobs, i)
	if q.n--; int(l.from) == len(l.entries) {
		q.removeLeaf(l, j)
	}
}

// removeLeaf removes a leaf after its last job has left, unless it is the only leaf.
func (q *queue) removeLeaf(l *leaf, j *job) {
	l.entries, l.from = l.entries[:0], 0
	if q.n == 0 {
		q.last = key{}
		return
	}
	page, at := 0, 0
	if l != q.head {
		page, at = q.find(q.jobs.keyOf(j))
	}
	if p := &q.pages[page]; len(p.leaves) > 1 {
		p.leaves = slices.Delete(p.leaves, at, at+1)
	} else {
		q.pages = slices.Delete(q.pages, page, page+1)
	}
	q.jobs.freeLeaf(l)
	page = len(q.pages) - 1
	q.head, q.tail = q.leaf(0, 0), q.leaf(page, len(q.pages[page].leaves)-1)
}

// free frees the leaf of an empty queue.
func (q *queue) free() {
	if q.pages != nil {
		q.jobs.freeLeaf(q.head)
		*q = queue{jobs: q.jobs}
	}
}

func (q *queue) leaf(page, at int) *leaf { return q.jobs.leaves.at(q.pages[page].leaves[at].number) }

// find returns the position of the leaf for a key.
func (q *queue) find(k key) (page, at int) {
	page = sort.Search(len(q.pages)-1, func(n int) bool { return k.Before(q.pages[n+1].low) })
	refs := q.pages[page].leaves
	return page, sort.Search(len(refs)-1, func(n int) bool { return k.Before(refs[n+1].low) })
}

// insert adds a leaf at a position of a page. If the page is full, insert splits it, or
// adds a page after it.
func (q *queue) insert(page, at int, low key) *leaf {
	const half = pageLeaves / 2
	refs := q.pages[page].leaves
	if len(refs) == pageLeaves && at < pageLeaves {
		rest := slices.Clone(refs[half:])
		q.pages[page].leaves = refs[:half]
		q.pages = slices.Insert(q.pages, page+1, leafPage{rest[0].low, rest})
		if at > half {
			page, at = page+1, at-half
		}
	}
	l := q.jobs.newLeaf()
	l.entries = slices.Grow(l.entries, leafJobs)
	ref := leafRef{low, l.number}
	if p := &q.pages[page]; len(p.leaves) < pageLeaves {
		p.leaves = slices.Insert(p.leaves, at, ref)
	} else {
		q.pages = slices.Insert(q.pages, page+1, leafPage{low, []leafRef{ref}})
	}
	return l
}

// after returns the jobs after a key, in order. The queue must not change during the
// iteration.
func (q *queue) after(k key) iter.Seq[slot] {
	return func(yield func(slot) bool) {
		if q.n == 0 {
			return
		}
		page, at := q.find(k)
		place := q.leaf(page, at).find(q.jobs, k)
		for ; page < len(q.pages); page, at = page+1, 0 {
			for ; at < len(q.pages[page].leaves); at++ {
				l := q.leaf(page, at)
				for _, x := range l.entries[max(place, int(l.from)):] {
					if !yield(x.slot) {
						return
					}
				}
				place = 0
			}
		}
	}
}

// next returns the first job after a key, or none.
func (q *queue) next(k key) slot {
	if k == (key{}) {
		return q.top()
	}
	for i := range q.after(k) {
		return i
	}
	return none
}

// find returns the position of the first job after a key. Most keys are after the keys of
// all jobs with the same hint.
func (l *leaf) find(jobs *jobSlab, k key) int {
	all, hint := l.entries[l.from:], k.entry(none).hint
	n := sort.Search(len(all), func(m int) bool { return hint < all[m].hint })
	if n > 0 && all[n-1].hint == hint && k.Before(jobs.keyAt(all[n-1].slot)) {
		n = sort.Search(n-1, func(m int) bool { return all[m].hint == hint && k.Before(jobs.keyAt(all[m].slot)) })
	}
	return int(l.from) + n
}

// insert adds a job at a position of a leaf that is not full.
func (l *leaf) insert(place int, x entry) {
	if from := int(l.from); from > 0 && (len(l.entries) == leafJobs || place == from) {
		copy(l.entries[from-1:], l.entries[from:place])
		l.entries[place-1] = x
		l.from--
	} else {
		l.entries = slices.Insert(l.entries, place, x)
	}
}

// remove removes a job. If it was the first, remove prefetches the record of a job that
// will soon be first. Jobs that did not arrive in order are far apart in memory.
func (l *leaf) remove(jobs *jobSlab, i slot) {
	const ahead = 8
	at := int(l.from)
	if l.entries[at].slot == i {
		l.from++
		if at += 1 + ahead; at < len(l.entries) {
			prefetch(jobs.at(l.entries[at].slot))
		}
		return
	}
	for l.entries[at].slot != i {
		at++
	}
	l.entries = slices.Delete(l.entries, at, at+1)
}

// split moves the jobs of a full leaf, starting at a position, to an empty leaf.
func (l *leaf) split(jobs *jobSlab, next *leaf, from int) {
	next.entries = append(next.entries, l.entries[from:]...)
	l.entries = l.entries[:from]
	for _, x := range next.entries {
		jobs.at(x.slot).pos = next.number
	}
}

// newLeaf returns an empty leaf.
func (s *jobSlab) newLeaf() *leaf {
	n, l := s.leaves.alloc()
	l.number = n
	if last := len(s.spareEntries) - 1; last >= 0 {
		l.entries = s.spareEntries[last]
		s.spareEntries = s.spareEntries[:last]
	}
	return l
}

// freeLeaf frees a leaf. It keeps some arrays: while one queue becomes shorter, another
// becomes longer.
func (s *jobSlab) freeLeaf(l *leaf) {
	if cap(l.entries) == leafJobs && len(s.spareEntries) < cap(s.spareEntries) {
		s.spareEntries = append(s.spareEntries, l.entries[:0])
	}
	l.entries = nil
	s.leaves.free(l.number)
}
