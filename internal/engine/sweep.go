package engine

import (
	"bytes"
	"math"
	"slices"
)

// A Sweep deletes jobs of a tube, moves them to another tube, or kicks them. It can take
// many turns. It visits the jobs in order, except jobs put after it started.
type Sweep struct {
	Done    uint64  // number of jobs processed so far
	Refused Outcome // reason why the Log or a limit refused the next job, or OK

	tube   *tube // a removed tube has no jobs
	kicks  bool
	to     string  // destination of a move
	states []State // part of sweepable
	limit  uint64  // jobs
	lastID uint64  // Engine.lastID at the start
	after  key     // key of the last visited job
}

var sweepable = [...]State{Ready, Delayed, Buried}

// BeginClear prepares to delete up to n jobs of a tube that are Ready, Delayed or Buried.
// A state of zero means all of them, and n of zero means no limit. Reserved jobs cannot
// be cleared. ContinueSweep deletes the jobs.
func (e *Engine) BeginClear(tube []byte, state State, n uint32) (Sweep, Outcome) {
	return e.beginSweep(tube, "", state, n)
}

// BeginMove is BeginClear for a move to another tube. The jobs keep all other attributes,
// and their place among the jobs of the other tube follows from their keys. Workers that
// wait for that tube get the first ready jobs at once.
func (e *Engine) BeginMove(from, to []byte, state State, n uint32) (Sweep, Outcome) {
	if bytes.Equal(from, to) {
		return Sweep{}, NotFound
	}
	return e.beginSweep(from, string(to), state, n)
}

// BeginKick prepares a kick of up to n jobs in the used tube. It selects the buried jobs,
// the first buried first. If there are none, it selects the delayed jobs, the first due
// first. It kicks no more jobs than there are now, so that it ends even if workers bury
// jobs as fast as it kicks them.
func (e *Engine) BeginKick(s *Session, n uint32) Sweep {
	states, q := sweepable[2:], &s.use.buried
	if q.n == 0 {
		states, q = sweepable[1:2], &s.use.delayed
	}
	return Sweep{tube: s.use, kicks: true, states: states, limit: min(uint64(n), uint64(q.n)), lastID: e.lastID}
}

func (e *Engine) beginSweep(tube []byte, to string, state State, n uint32) (Sweep, Outcome) {
	w := Sweep{tube: e.byName[string(tube)], to: to, states: sweepable[:], limit: uint64(n), lastID: e.lastID}
	if n == 0 {
		w.limit = math.MaxUint64
	}
	if i := slices.Index(sweepable[:], state); i >= 0 {
		w.states = sweepable[i : i+1]
	} else if state != 0 {
		return Sweep{}, NotFound
	}
	if w.tube == nil {
		return Sweep{}, NotFound
	}
	return w, OK
}

// ContinueSweep executes a slice of a sweep and reports whether more jobs remain. A sweep
// ends early only if a change is refused.
func (e *Engine) ContinueSweep(now int64, w *Sweep) (more bool) {
	for n := 0; w.Done < w.limit && len(w.states) > 0; n++ {
		if e.enoughChanges(n) {
			return true
		}
		e.turnWork++
		i := w.tube.queueOf(w.states[0]).next(w.after)
		if i == none {
			w.states, w.after = w.states[1:], key{}
			continue
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

// sweep processes one job.
func (e *Engine) sweep(now int64, w *Sweep, i slot, j *job) Outcome {
	switch {
	case w.kicks:
		return e.kick(now, i, j)
	case w.to != "":
		return e.move(now, i, j, w.to)
	}
	if o := e.admit(JobDeleted, w.tube, j.bodyLen); o != OK {
		return o
	}
	e.emitDeleted(w.tube, i, j)
	e.removeJob(i, j)
	return OK
}

// Kick executes a whole kick at once, however long it takes, and returns the number of
// jobs made ready.
func (e *Engine) Kick(now int64, s *Session, n uint32) (kicked uint32) {
	w := e.BeginKick(s, n)
	for e.ContinueSweep(now, &w) {
	}
	return uint32(w.Done)
}

// move moves an unreserved job to another tube.
func (e *Engine) move(now int64, i slot, j *job, name string) Outcome {
	from := e.tubeOfJob(j)
	to, o := e.roomIn(name, j)
	if o != OK {
		return o
	}
	was := e.origins.of[j.id]
	e.setOrigin(j.id, "")
	e.moveTo(i, j, to, was, func() {})
	e.offer(now, to, i, j)
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
	if e.room(to, j.bodyLen, 1, int64(j.bodyLen), 0) == OK {
		o = e.admit(JobMoved, to, j.bodyLen)
	}
	if o != OK {
		e.removeIfUnused(to) // the tube might have been created for this move
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
