package engine

import (
	"bytes"
	"math"
)

// A Sweep deletes the jobs of a tube in one state, or moves them to another tube. It can
// take many turns. It visits the jobs in order, except jobs put after it started.
type Sweep struct {
	Done    uint64  // number of jobs deleted or moved so far
	Refused Outcome // reason why the Log or a limit refused the next job, or OK

	tube   string
	to     string // destination of a move; empty for a deletion
	state  State
	limit  uint64 // jobs
	lastID uint64 // Engine.lastID at the start
	after  key    // key of the last visited job
}

// BeginClear prepares to delete the Ready, Delayed or Buried jobs of a tube. Reserved
// jobs cannot be cleared. ContinueSweep deletes them.
func (e *Engine) BeginClear(tube []byte, state State) (Sweep, Outcome) {
	return e.beginSweep(tube, "", state)
}

// BeginMove prepares to move the Ready, Delayed or Buried jobs of a tube to another tube.
// The jobs keep all other attributes, and their place among the jobs of the other tube
// follows from their keys. Workers that wait for that tube get the first ready jobs at
// once. ContinueSweep moves them.
func (e *Engine) BeginMove(from, to []byte, state State) (Sweep, Outcome) {
	if bytes.Equal(from, to) {
		return Sweep{}, NotFound
	}
	return e.beginSweep(from, string(to), state)
}

func (e *Engine) beginSweep(tube []byte, to string, state State) (Sweep, Outcome) {
	t := e.byName[string(tube)]
	if t == nil || t.queueOf(state) == nil {
		return Sweep{}, NotFound
	}
	return Sweep{tube: t.name, to: to, state: state, limit: math.MaxUint64, lastID: e.lastID}, OK
}

// AtMost limits a sweep to a number of jobs.
func (w *Sweep) AtMost(jobs uint64) { w.limit = jobs }

// ContinueSweep executes a slice of a sweep and reports whether more jobs remain. A sweep
// ends early only if a change is refused.
func (e *Engine) ContinueSweep(now int64, w *Sweep) (more bool) {
	for n := 0; w.Done < w.limit; n++ {
		if e.enoughChanges(n) {
			return true
		}
		e.turnWork++
		t := e.byName[w.tube]
		if t == nil {
			return false
		}
		i := t.queueOf(w.state).next(w.after)
		if i == none {
			return false
		}
		j := e.jobs.at(i)
		if w.after = e.jobs.keyOf(j); j.id > w.lastID {
			continue
		}
		if w.Refused = e.sweep(now, w, i, j); w.Refused != OK {
			return false
		}
		w.Done++
	}
	return false
}

// sweep deletes or moves one job.
func (e *Engine) sweep(now int64, w *Sweep, i slot, j *job) Outcome {
	t := e.tubeOfJob(j)
	if w.to != "" {
		return e.move(now, i, j, w.to)
	}
	if o := e.admit(JobDeleted, t, j.bodyLen); o != OK {
		return o
	}
	e.emitDeleted(t, i, j)
	e.removeJob(i, j)
	return OK
}

// move moves an unreserved job to another tube.
func (e *Engine) move(now int64, i slot, j *job, name string) Outcome {
	from := e.tubeOfJob(j)
	to, o := e.roomIn(name, j)
	if o != OK {
		return o
	}
	was := e.origins[j.id]
	e.setOrigin(j.id, "")
	e.moveTo(i, j, to, was, func() {})
	e.attach(to, i, j)
	if j.state() == Ready {
		e.match(now, to)
	}
	e.removeIfUnused(from)
	return OK
}

// roomIn returns the named tube if the job can be moved there, and creates it if
// necessary.
func (e *Engine) roomIn(name string, j *job) (*tube, Outcome) {
	if !e.hasRoomForTube([]byte(name)) {
		return nil, OutOfMemory
	}
	to, o := e.tubeNamed(name), OutOfMemory
	if e.room(to, j.bodyLen, false) == OK {
		o = e.admit(JobMoved, to, j.bodyLen)
	}
	if o != OK {
		e.removeIfUnused(to) // it might have been created for this move
		return nil, o
	}
	return to, OK
}

// moveTo moves a job to another tube. It calls there before it emits the Change, so that
// one Change covers both. The Log must have admitted the Change. The caller must attach
// the job. was is the job's previous origin.
func (e *Engine) moveTo(i slot, j *job, to *tube, was string, there func()) {
	if e.opt.Logged {
		e.turnWork += int(j.bodyLen) / bytesPerUnit // the body is copied for the Log
		e.turnLogged += int(j.bodyLen)
	}
	from := e.tubeOfJob(j)
	e.detach(from, i, j)
	e.keys.remove(i)
	from.bytes -= int64(j.bodyLen)
	to.bytes += int64(j.bodyLen)
	j.setTube(to.num)
	there()
	e.emitMoved(i, j, from, int(j.bodyLen), was)
}

// queueOf returns the queue of a tube for the state Ready, Delayed or Buried, or nil.
func (t *tube) queueOf(state State) *queue {
	switch state {
	case Ready:
		return &t.ready
	case Delayed:
		return &t.delayed
	case Buried:
		return &t.buried
	}
	return nil
}
