package model

const (
	members = 3
	jobs    = 2
	logSize = 9 // entries of a log, and one that is not used
	boxSize = 3 // letters in a mailbox
)

// A fact is about a job: 0 is none, else the number of the job and what has happened to it.
type fact uint8

const (
	put  fact = 1 + iota // to the first job
	bury                 // the facts of the next job follow
	del
	kinds = 3
)

func factOf(job int, kind fact) fact { return kind + fact(job)*kinds }
func (f fact) job() int              { return int(f-1) / kinds }
func (f fact) kind() fact            { return (f-1)%kinds + 1 }

// A queue is the state of each job.
type queue [jobs]jobState

type jobState uint8

const (
	never jobState = iota
	ready
	reserved // in the engine of who decides, and nowhere else
	buried
	gone
)

// isThere reports whether the job exists.
func (s jobState) isThere() bool { return s == ready || s == reserved || s == buried }

// committed returns the state as facts tell it.
func (s jobState) committed() jobState {
	switch s {
	case reserved:
		return ready
	case gone:
		return never
	}
	return s
}

// dropSessions is engine.DropSessions.
func (q *queue) dropSessions() {
	for i := range q {
		if q[i] == reserved {
			q[i] = ready
		}
	}
}

func (q *queue) hasReserved() bool { return q[0] == reserved || q[1] == reserved }

// apply is engine.Restore: it decides nothing.
func (q *queue) apply(f fact) {
	if f == 0 {
		return
	}
	job := &q[f.job()]
	switch {
	case f.kind() == put:
		*job = ready
	case f.kind() == bury && job.isThere():
		*job = buried
	case f.kind() == del:
		*job = gone
	}
}

// equal reports whether clients would see the same.
func (q queue) equal(other queue) bool {
	for i := range q {
		if q[i].committed() != other[i].committed() {
			return false
		}
	}
	return true
}

// An entry of the log. A new leader's first one has no fact, nor has the one with which a member that has
// resigned comes back.
type entry struct {
	term uint8
	fact fact
}

// A letter is for the raft loop.
type letter struct {
	epoch   uint8 // of the proposal
	fact    fact
	rebuilt bool // no proposal: the engine was made again
}

// A member is one process with its disk. Indexes of entries begin at 1.
type member struct {
	// Raft, which is taken to be right.
	leads  bool
	term   uint8
	log    [logSize]entry
	last   uint8 // of log
	synced uint8 // so much of log survives a power cut
	cut    uint8 // the entries up to here are gone
	commit uint8

	// Package core.
	epoch    uint8 // in force; 0: none
	epochs   uint8
	barriers uint8 // an epoch needs so many entries without a fact, of this term, to be applied
	resigned bool
	own      [boxSize]uint8 // indexes of what was proposed in the epoch
	owns     uint8

	// The turn.
	engine   queue
	decides  uint8 // the epoch in which the engine decides; 0: it follows
	spoilt   bool
	undone   bool          // in its last epoch the engine has done what may never be committed
	ownTo    uint8         // the last entry of that epoch
	kept     uint8         // entries up to here are for the journal only: the engine was kept, and has decided them
	executed [boxSize]fact // in that epoch
	execs    uint8
	box      [boxSize]letter
	letters  uint8

	// The journal.
	applied     uint8 // the mark
	journal     queue
	syncedMark  uint8
	syncedQueue queue
	whole       uint8 // before this entry is applied the journal may have a part of what follows its mark
}

// A snapshot is a copy of the leader's journal for another member.
type snapshot struct {
	active   bool
	to       uint8
	restored bool // the member's log begins after it, durably
	at       uint8
	whole    uint8 // see member
	queue    queue
}

// A state of the whole cluster.
type state struct {
	members  [members]member
	snapshot snapshot

	// What happened, by anybody's knowledge.
	committed [logSize]entry
	commits   uint8

	// What may still happen.
	terms, facts, crashes, refusals, snapshots, reserves uint8
}

// bounds say how much may happen.
type bounds struct{ terms, facts, crashes, refusals, snapshots, reserves uint8 }

func newState(b bounds) state {
	return state{terms: b.terms, facts: b.facts, crashes: b.crashes, refusals: b.refusals, snapshots: b.snapshots, reserves: b.reserves}
}

// replay returns what the first n committed entries make.
func (s *state) replay(n uint8) (q queue) {
	for i := uint8(1); i <= n; i++ {
		q.apply(s.committed[i].fact)
	}
	return q
}
