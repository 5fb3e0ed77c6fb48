package engine

import "slices"

// runs are the runs of a queue.
//
// I20. order has the runs with jobs, the one with the first job first, and no others.
type runs struct {
	all    []run
	order  []uint8    // places in all
	missed [64]uint32 // streams that came when they had no run, by their hashes
}

const (
	maxRuns = 16
	inHeap  = maxRuns // as the run of a job: it is in none
)

// A run is jobs of one stream in the order of their keys. A job is appended if its key
// is after those of all others. One that is removed leaves a hole, and no other is
// moved. A stream may have several runs: jobs that were reserved and come back in order
// make a second one, with keys before those of the first. A run without jobs waits for
// the next of its stream, until another stream needs its place.
//
// I21. The keys of the jobs ascend, and none is after last. first is the key of the job
// at head, the first that is there. The chunks are those from head to end; each counts
// its jobs, and has storage if it has any or is the last. Together they have n. A job
// has the place of its run in runs.all as run, and the low bits of its number as pos.
type run struct {
	stream      uint32
	n           int    // jobs
	first, last entry  // last is of the job that was appended last, which may be gone
	head, end   uint64 // numbers in the run: of the first job, and of the next to be appended
	chunks      []chunk
	serial      uint64 // no other run has had it; 0 if there are no jobs
}

// A chunk is places of a run that are side by side.
type chunk struct {
	slots *[chunkSlots]slot // none where the job is gone
	n     int
}

// newRuns returns runs without jobs.
func (s *jobSlab) newRuns() *runs {
	rs := s.spareRuns
	if s.spareRuns = nil; rs == nil {
		rs = new(runs)
	}
	return rs
}

// freeRuns takes back runs without jobs.
func (s *jobSlab) freeRuns(rs *runs) {
	for k := range rs.all {
		chunks := rs.all[k].chunks
		if len(chunks) > 0 {
			s.freeChunk(&chunks[len(chunks)-1])
		}
		rs.all[k] = run{chunks: chunks[:0]}
	}
	*rs = runs{all: rs.all, order: rs.order[:0]}
	s.spareRuns = rs
}

// newChunk returns storage for a chunk.
func (s *jobSlab) newChunk() *[chunkSlots]slot {
	last := len(s.spareChunks) - 1
	if last < 0 {
		return new([chunkSlots]slot)
	}
	slots := s.spareChunks[last]
	s.spareChunks = s.spareChunks[:last]
	return slots
}

// freeChunk takes the storage of a chunk away. Some is kept: as one run becomes shorter,
// another becomes longer.
func (s *jobSlab) freeChunk(c *chunk) {
	if len(s.spareChunks) < maxRuns {
		s.spareChunks = append(s.spareChunks, c.slots)
	}
	c.slots = nil
}

const (
	chunkSlots = 256
	maxChunks  = 1 << 31 / chunkSlots // so that a pos is a number without doubt
)

// push appends a job to a run, if one takes it. A stream that comes for the second time
// is given a run, if mayOpen is true and not all are in use.
func (rs *runs) push(jobs *jobSlab, x entry, j *job, mayOpen bool) (ok bool) {
	stream := streamOf(j)
	k := rs.find(x, stream)
	if k == inHeap && mayOpen {
		k = rs.place(stream)
	}
	if k == inHeap {
		return false
	}
	r := &rs.all[k]
	if r.n == 0 {
		jobs.runsBegun++
		r.stream, r.serial, r.first = stream, jobs.runsBegun, x
		r.head, r.end = 0, 0
		rs.order = append(rs.order, k)
		rs.rise(len(rs.order) - 1)
	}
	j.setRun(k)
	j.pos = uint32(r.end)
	r.append(jobs, x)
	return true
}

// find returns the place of the run that takes a job, or inHeap. Of several it is the one
// whose last job is the nearest: the others may take jobs that this one cannot.
func (rs *runs) find(x entry, stream uint32) (best uint8) {
	best = inHeap
	for k := range rs.all {
		switch r := &rs.all[k]; {
		case r.stream != stream, r.n > 0 && !r.last.before(x), len(r.chunks) >= maxChunks:
		case best == inHeap, r.n > 0 && (rs.all[best].n == 0 || rs.all[best].last.before(r.last)):
			best = uint8(k)
		}
	}
	return best
}

// place returns a free place for a run of a stream, or inHeap.
func (rs *runs) place(stream uint32) uint8 {
	if len(rs.order) == maxRuns {
		return inHeap
	}
	if missed := &rs.missed[stream*0x9E3779B1>>26]; *missed != stream {
		*missed = stream
		return inHeap
	}
	for k := range rs.all {
		if rs.all[k].n == 0 {
			return uint8(k)
		}
	}
	rs.all = append(rs.all, run{})
	return uint8(len(rs.all) - 1)
}

// append appends a job.
func (r *run) append(jobs *jobSlab, x entry) {
	last := int(r.end/chunkSlots - r.head/chunkSlots)
	if last == len(r.chunks) {
		if last > 0 && r.chunks[last-1].n == 0 {
			jobs.freeChunk(&r.chunks[last-1])
		}
		r.chunks = append(r.chunks, chunk{slots: jobs.newChunk()})
	}
	c := &r.chunks[last]
	c.slots[r.end%chunkSlots] = x.slot
	c.n++
	r.n++
	r.last = x
	r.end++
}

// remove removes a job. It returns the units of work that it took to find the first one
// that is left.
func (rs *runs) remove(jobs *jobSlab, j *job) (work int) {
	r := &rs.all[j.run()]
	at := r.head + uint64(j.pos-uint32(r.head))
	c := &r.chunks[at/chunkSlots-r.head/chunkSlots]
	c.slots[at%chunkSlots] = none
	c.n--
	r.n--
	if c.n == 0 && at/chunkSlots < (r.end-1)/chunkSlots {
		jobs.freeChunk(c)
	}
	switch {
	case r.n == 0:
		r.reset()
		k := slices.Index(rs.order, j.run())
		rs.order = slices.Delete(rs.order, k, k+1)
	case at == r.head:
		work = r.advance()
		i := r.chunks[0].slots[r.head%chunkSlots]
		r.first = jobs.entryOf(i, jobs.at(i))
		if rs.sink(slices.Index(rs.order, j.run())); len(rs.order) > 1 {
			r.prefetch(jobs)
		}
	}
	return work
}

// prefetch asks for the record of a job that is soon the first. The jobs of one of
// several runs are far apart in memory, and the processor cannot foresee which is next.
func (r *run) prefetch(jobs *jobSlab) {
	const ahead = 8
	if at := r.head%chunkSlots + ahead; at < chunkSlots && r.head+ahead < r.end {
		if i := r.chunks[0].slots[at]; i != none {
			prefetch(jobs.at(i))
		}
	}
}

// advance moves head to the first job that is left.
func (r *run) advance() (work int) {
	gone := 0
	for r.chunks[gone].n == 0 {
		gone++
	}
	if gone > 0 {
		r.chunks = r.chunks[gone:]
		r.head = (r.head/chunkSlots + uint64(gone)) * chunkSlots
	}
	from := r.head
	for r.chunks[0].slots[r.head%chunkSlots] == none {
		r.head++
	}
	return (gone + int(r.head-from)) / looksPerUnit
}

// reset frees the chunks of a run without jobs but for one.
func (r *run) reset() {
	last := r.chunks[len(r.chunks)-1]
	if r.end > 8*chunkSlots { // the array behind chunks may be long
		r.chunks = nil
	}
	r.chunks = append(r.chunks[:0], last)
	r.serial = 0
}

// rise and sink move the run at a place of order to where it belongs: when its first job
// is before, or after, the one that was first until now.
func (rs *runs) rise(n int) {
	for ; n > 0 && rs.firstOf(n).before(*rs.firstOf(n - 1)); n-- {
		rs.order[n-1], rs.order[n] = rs.order[n], rs.order[n-1]
	}
}

func (rs *runs) sink(n int) {
	for ; n+1 < len(rs.order) && rs.firstOf(n+1).before(*rs.firstOf(n)); n++ {
		rs.order[n], rs.order[n+1] = rs.order[n+1], rs.order[n]
	}
}

// firstOf returns the first entry of the run at a place of order.
func (rs *runs) firstOf(n int) *entry { return &rs.all[rs.order[n]].first }
