package engine

import "slices"

// runs contains the runs of a queue.
//
// I20. order contains exactly the runs with jobs, ordered by their first jobs.
type runs struct {
	all    []run
	order  []uint8    // places in all
	missed [64]uint32 // streams that came when they had no run, by their hashes
}

const (
	maxRuns = 16
	inHeap  = maxRuns // value of the job's run if it is in none
)

// A run contains jobs of one stream, ordered by key. A job is appended if its key is
// greater than all others. A removed job leaves a hole; no other job moves. A stream can
// have several runs: jobs that were reserved and return in order form a second run, with
// smaller keys. An empty run waits for the next job of its stream until another stream
// needs its place.
//
// I21. The keys of the jobs ascend, and none is greater than last. first is the key of
// the job at head, the first remaining job. The chunks from head to end contain the jobs.
// Each chunk counts its jobs, and has storage if it has jobs or is the last. The counts
// sum to n. A job stores the index of its run in runs.all as run, and the low bits of its
// number as pos.
type run struct {
	stream      uint32
	n           int    // jobs
	first, last entry  // last is the last appended job, which can be gone
	head, end   uint64 // numbers in the run: of the first job, and of the next to be appended
	chunks      []chunk
	serial      uint64 // unique number of the run; 0 if it has no jobs
}

// A chunk contains adjacent places of a run.
type chunk struct {
	slots *[chunkSlots]slot // none if the job is gone
	n     int
}

// newRuns returns empty runs.
func (s *jobSlab) newRuns() *runs {
	rs := s.spareRuns
	if s.spareRuns = nil; rs == nil {
		rs = new(runs)
	}
	return rs
}

// freeRuns frees empty runs for reuse.
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

// newChunk allocates the storage of a chunk.
func (s *jobSlab) newChunk() *[chunkSlots]slot {
	last := len(s.spareChunks) - 1
	if last < 0 {
		return new([chunkSlots]slot)
	}
	slots := s.spareChunks[last]
	s.spareChunks = s.spareChunks[:last]
	return slots
}

// freeChunk frees the storage of a chunk. Some is kept, because another run usually grows
// as one shrinks.
func (s *jobSlab) freeChunk(c *chunk) {
	if len(s.spareChunks) < maxRuns {
		s.spareChunks = append(s.spareChunks, c.slots)
	}
	c.slots = nil
}

const (
	chunkSlots = 256
	maxChunks  = 1 << 31 / chunkSlots // keeps pos unambiguous
)

// push appends a job to a run that accepts it. If mayOpen is set and a run is free, a
// stream that arrives for the second time gets a run.
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

// find returns the index of the run that accepts a job, or inHeap. If several accept it,
// find chooses the run whose last job is nearest, because the others can accept jobs that
// this one cannot.
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

// remove removes a job and returns the units of work to find the first remaining job.
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

// prefetch requests the record of a job that will soon be first. Jobs of several runs are
// far apart in memory, and the processor cannot predict the next one.
func (r *run) prefetch(jobs *jobSlab) {
	const ahead = 8
	if at := r.head%chunkSlots + ahead; at < chunkSlots && r.head+ahead < r.end {
		if i := r.chunks[0].slots[at]; i != none {
			prefetch(jobs.at(i))
		}
	}
}

// advance moves head to the first remaining job.
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

// reset frees all chunks but one of an empty run.
func (r *run) reset() {
	last := r.chunks[len(r.chunks)-1]
	if r.end > 8*chunkSlots { // the array behind chunks can be long
		r.chunks = nil
	}
	r.chunks = append(r.chunks[:0], last)
	r.serial = 0
}

// rise and sink restore the order of the run at index n after its first job became
// smaller or greater.
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

// firstOf returns the first entry of the run at index n of order.
func (rs *runs) firstOf(n int) *entry { return &rs.all[rs.order[n]].first }
