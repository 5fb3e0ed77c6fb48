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

// String returns the word that stats-job shows.
func (s State) String() string {
	switch s {
	case Ready:
		return "ready"
	case Reserved:
		return "reserved"
	case Delayed:
		return "delayed"
	case Buried:
		return "buried"
	}
	return "invalid"
}

// UrgentPri is the priority below which a ready job counts as urgent.
const UrgentPri = 1024

const second = int64(1e9) // ns

// A slot is the number of a job's record in the slab; none stands for no job.
type slot = uint32

const none = ^slot(0)

// A job is one record of the slab: fixed size and without pointers, so that the
// garbage collector never looks at it.
//
// I1. A job is in exactly one place: the queue of its state in its tube, or the
// reserved heap of its holder. pos, and in a queue run, say where.
//
// I2. Its tube exists, and so does the session that holds it.
//
// I18. The key of a reserved job's heap is when its TTR runs out: when and the TTR, or
// later if it was touched.
//
// I7. No id is above Engine.lastID. I8. The TTR is at least one second.
type job struct {
	// Durable: written in Changes and restored from them. Reserved is written
	// as Ready.
	id       uint64
	created  int64  // ns; may be negative after a restart
	when     int64  // ns; Delayed: becomes ready. Ready: became ready. Reserved: was reserved. Buried: rank in the order of burying
	pri      uint32 // smaller is more urgent
	delay    uint32 // s; of the last put or release
	ttr      uint32 // s; at least 1
	reserves uint32 // times reserved
	timeouts uint32 // times the TTR ran out
	releases uint32
	buries   uint32
	kicks    uint32
	tube     uint32 // number of its tube
	bodyLen  uint32 // bytes, without CR LF
	state    State
	run      uint8 // of its queue, or inHeap
	unlogged bool  // reserves or timeouts have changed since the last Change. In memory only; it fills a gap here

	// Bookkeeping: in memory only.
	bodySlot uint32 // where the body is, within the size class of bodyLen
	pos      uint32 // place in its heap, or run
	holder   uint32 // Reserved: number of the session that holds it. Else undefined
	mark     uint32 // see SetMark; stats-job shows it as file

	heldBefore, heldAfter slot // Reserved: neighbours in the list of its holder. Else undefined
}

// A Job is what a reserve or peek hands out. Body is valid until the next call
// of the engine.
type Job struct {
	ID   uint64
	Body []byte
}

// Keep returns the body for use after the turn. A large one is not copied: it has
// memory of its own, which is written once.
func (j Job) Keep() []byte {
	if len(j.Body) > maxClassed {
		return j.Body
	}
	return bytes.Clone(j.Body)
}

// jobSlab holds the records of all jobs.
type jobSlab struct {
	slab[job]

	runsBegun uint64 // see run.serial
	minHeap   int    // the constant, or less in tests
}

func newJobSlab() jobSlab { return jobSlab{slab: newSlab[job](), minHeap: minHeap} }
