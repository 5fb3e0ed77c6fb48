package engine

import "bytes"

// State is the state of a job.
type State uint8

const (
	Ready State = 1 + iota
	Reserved
	Delayed
	Buried
)

// String returns the state as in stats-job.
func (s State) String() string { return stateWords[s] }

var stateWords = [...]string{"", Ready: "ready", Reserved: "reserved", Delayed: "delayed", Buried: "buried"}

// UrgentPri is the priority below which a ready job is urgent.
const UrgentPri = 1024

const second = int64(1e9) // ns

// A slot is the index of a job's record in the slab, or none.
type slot = uint32

const none = ^slot(0)

// A job is a record of the slab. It has a fixed size and no pointers, so that the garbage
// collector never scans it.
//
// I1. A job is in exactly one place: the queue of its state in its tube, or the queue of
// its holder.
//
// I2. Its tube and the session that holds it exist.
//
// I7. No id is above Engine.lastID. I8. The TTR is at least one second.
type job struct {
	// Durable: written in Changes and restored from them.
	id      uint64
	created int64 // in ns; can be negative after a restart

	pri            uint32 // smaller is more urgent
	delayAndCounts uint32 // seconds of the last put or release and, if the job is packed, the counts of its coldJob
	ttr            uint32 // in seconds; at least 1
	bodyLen        uint32 // bytes, without CR LF

	// Bookkeeping, in memory only.
	bodySlot uint32 // slot of the body in the size class of bodyLen
	pos      uint32 // number of its leaf; see queue
	cold     uint32 // slot of its coldJob, or none; if the job is packed, isPacked and the rank in the order of burying
	packing  uint32 // number of its tube, and the bits below
}

// The fields of job.packing. The tube and the state are durable; Reserved is logged as
// Ready.
const (
	stateBits = 2
	unlogged  = 1 << stateBits // reserves or timeouts have changed since the last Change
	tubeShift = stateBits + 1

	maxTubes = 1 << (32 - tubeShift)
)

func (j *job) state() State     { return State(j.packing&(1<<stateBits-1)) + Ready }
func (j *job) setState(s State) { j.packing = j.packing&^(1<<stateBits-1) | uint32(s-Ready) }

func (j *job) tube() uint32     { return j.packing >> tubeShift }
func (j *job) setTube(t uint32) { j.packing = j.packing&(1<<tubeShift-1) | t<<tubeShift }

// delay returns the delay of the last put or release, in seconds.
func (j *job) delay() uint32 {
	if j.packed() {
		return j.delayAndCounts % (1 << packedDelayBits)
	}
	return j.delayAndCounts
}

// Counts contains the numbers of events of a job.
type Counts struct {
	Reserves uint32
	Timeouts uint32 // number of times that the TTR expired
	Releases uint32
	Buries   uint32
	Kicks    uint32
}

// A coldJob is the second part of a job's record. It is created when a job is first
// reserved or kicked, and stays until the job is deleted or buried. Most waiting jobs
// have none. A buried job's coldJob is packed into the first part of the record if its
// values are small.
//
// I18. due of a reserved job is when plus the TTR, or later if it was touched.
//
// I22. Each coldJob belongs to one job, and the spare one to none. A reserved job has
// one. A buried job has one or is packed. No other job is packed.
//
// I23. Only slots with jobs have segments.
type coldJob struct {
	// Durable fields.
	when int64 // in ns. Delayed: becomes ready. Ready: became ready. Reserved: was reserved. Buried: rank in the order of burying
	Counts

	// In memory only.
	touches               uint32 // Reserved: number since the reserve. Otherwise undefined
	holder                uint32 // Reserved: number of the session that holds it. Otherwise undefined
	due                   int64  // time in ns at which the TTR of a reserved job expires; undefined in other states
	heldBefore, heldAfter slot   // Reserved: neighbors in the list of its holder. Otherwise undefined
}

// A Job is the result of a reserve or peek. Its body is valid until the next call of the
// engine. The bodies of a batch are valid until another method is called.
type Job struct {
	ID   uint64
	Body []byte
}

// Keep returns the body for use after the turn. It does not copy a large body, which has
// its own allocation and is written only once.
func (j Job) Keep() []byte {
	if len(j.Body) > maxClassed {
		return j.Body
	}
	return bytes.Clone(j.Body)
}

// A jobSlab contains the records of all jobs.
type jobSlab struct {
	slab[job]
	colds        slab[coldJob]
	coldCount    int
	spareCold    slot // a free coldJob for the next job that needs one, or none
	leaves       slab[leaf]
	spareEntries [][]entry      // spare arrays for leaves
	segments     sparse[uint32] // see Engine.SetSegment
}

func newJobSlab() jobSlab {
	return jobSlab{slab: newSlab[job](), colds: newSlab[coldJob](), spareCold: none, leaves: newSlab[leaf](), spareEntries: make([][]entry, 0, 16)}
}

// alloc allocates a record and returns its slot and the empty record.
func (s *jobSlab) alloc() (slot, *job) {
	i, j := s.slab.alloc()
	j.cold = none
	return i, j
}

// next returns the first job at or after a place in the slab, and the place after it. If
// ok is false, the rest of the page has no job, and next is the place after the page.
func (s *jobSlab) next(place slot) (i, next slot, ok bool) {
	if i, ok = s.slots.nextUsed(place); ok {
		return i, i + 1, true
	}
	return none, (place/slotsPerPage + 1) * slotsPerPage, false
}

// places returns the number of places in the slab.
func (s *jobSlab) places() slot { return slot(len(s.pages)) * slotsPerPage }

// free frees both records of a job. gone reports whether the page of the first record was
// freed.
func (s *jobSlab) free(i slot, j *job) (gone bool) {
	s.freeCold(j)
	s.segments.set(i, 0)
	if gone = s.slab.free(i); gone {
		s.segments.freePage(i)
	}
	return gone
}

func (s *jobSlab) freeCold(j *job) {
	if j.cold == none || j.packed() {
		return
	}
	s.coldCount--
	if s.spareCold == none {
		s.spareCold = j.cold
	} else {
		s.colds.free(j.cold)
	}
}

// cold returns the coldJob of a job. It creates a coldJob if the job has none or is
// packed.
func (s *jobSlab) cold(j *job) *coldJob {
	if j.cold != none && !j.packed() {
		return s.colds.at(j.cold)
	}
	i := s.spareCold
	if s.spareCold = none; i == none {
		i, _ = s.colds.alloc()
	}
	s.coldCount++
	c := s.colds.at(i)
	if j.packed() {
		*c = j.unpacked()
	} else {
		*c = coldJob{when: j.afterDelay()}
	}
	j.cold, j.delayAndCounts = i, j.delay()
	return c
}

// held returns the coldJob of a reserved job.
func (s *jobSlab) held(j *job) *coldJob { return s.colds.at(j.cold) }

// heldAt returns the coldJob of the reserved job in a slot.
func (s *jobSlab) heldAt(i slot) *coldJob { return s.held(s.at(i)) }

// coldOf returns a copy of the coldJob of a job. If the job has none, it returns the
// values that a coldJob would have.
func (s *jobSlab) coldOf(j *job) coldJob {
	switch {
	case j.cold == none:
		return coldJob{when: j.afterDelay()}
	case j.packed():
		return j.unpacked()
	}
	return *s.colds.at(j.cold)
}

// unpacked returns the coldJob of a packed job.
func (j *job) unpacked() coldJob {
	c := coldJob{when: int64(j.cold &^ isPacked)}
	counts := j.delayAndCounts >> packedDelayBits
	for _, count := range c.All() {
		*count = counts % (1 << packedCountBits)
		counts >>= packedCountBits
	}
	return c
}

// when returns coldJob.when.
func (s *jobSlab) when(j *job) int64 {
	switch {
	case j.cold == none:
		return j.afterDelay()
	case j.packed():
		return int64(j.cold &^ isPacked)
	}
	return s.colds.at(j.cold).when
}

// A buried job is packed if its record has room for the values of its coldJob: the rank
// in cold, and the counts next to the delay, which is at most a day.
const (
	isPacked        = 1 << 31
	packedCountBits = 3
	packedDelayBits = 32 - 5*packedCountBits
)

func (j *job) packed() bool { return j.cold&isPacked != 0 && j.cold != none }

// pack moves the values of a buried job's coldJob into the job's record and frees the
// coldJob. It changes nothing if the values are too large.
func (s *jobSlab) pack(j *job, c *coldJob) {
	if c.when < 0 || c.when >= int64(none&^isPacked) || j.delayAndCounts >= 1<<packedDelayBits {
		return
	}
	packed := j.delayAndCounts
	for k, count := range c.All() {
		if *count >= 1<<packedCountBits {
			return
		}
		packed |= *count << (packedDelayBits + k*packedCountBits)
	}
	rank := uint32(c.when)
	s.freeCold(j)
	j.cold, j.delayAndCounts = rank|isPacked, packed
}

// All returns pointers to all counts, in the order of records.
func (c *Counts) All() [5]*uint32 {
	return [...]*uint32{&c.Reserves, &c.Timeouts, &c.Releases, &c.Buries, &c.Kicks}
}

// afterDelay returns the time at which the delay of a job's put ended or will end. The
// job must not be packed.
func (j *job) afterDelay() int64 { return j.created + int64(j.delayAndCounts)*second }
