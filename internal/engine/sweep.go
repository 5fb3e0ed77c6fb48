package engine

import "bytes"

// A Sweep goes over the jobs of a tube that are in one state, and deletes them or
// moves them to another tube. That may take many turns. It is about the jobs that
// were put before it began, and deals with each that stays in that state until it
// comes to it; ready and delayed ones that are put meanwhile are left alone.
type Sweep struct {
	Done    uint64  // jobs deleted or moved so far
	Refused Outcome // why the Log, or the limits of the other tube, refused the next one; OK if they did not

	tube, to string // to is where they are moved; empty: they are deleted
	state    State
	last     uint64 // the highest id that it is about
	at       int    // the entries of the heap before this were looked at, and left
	again    bool   // but since then others may have come there
}

// BeginClear prepares to delete the jobs of a tube in a state: Ready, Delayed or
// Buried. What a worker holds cannot be deleted under its hands. Nothing is done
// before ContinueSweep.
func (e *Engine) BeginClear(tube []byte, state State) (Sweep, Outcome) {
	return e.beginSweep(tube, "", state)
}

// BeginMove prepares to move the jobs of a tube in a state, which is Ready, Delayed
// or Buried, to another tube. They keep their ids and whatever else they have, so
// that their order is the same there, between those that are there already. A
// worker that waits there is given the first ready ones at once.
func (e *Engine) BeginMove(from, to []byte, state State) (Sweep, Outcome) {
	if bytes.Equal(from, to) {
		return Sweep{}, NotFound
	}
	return e.beginSweep(from, string(to), state)
}

func (e *Engine) beginSweep(tube []byte, to string, state State) (Sweep, Outcome) {
	t := e.byName[string(tube)]
	if t == nil || t.heapOf(state) == nil {
		return Sweep{}, NotFound
	}
	return Sweep{tube: t.name, to: to, state: state, last: e.lastID}, OK
}

// ContinueSweep does as much of a sweep as a turn should bear and reports whether
// there is more to do. It ends early only if it is refused more.
func (e *Engine) ContinueSweep(now int64, w *Sweep) (more bool) {
	for n := 0; !e.enough(n); n++ {
		t := e.byName[w.tube]
		if t == nil {
			return false
		}
		h := t.heapOf(w.state)
		switch {
		case w.at < h.n:
			i := h.at(w.at).slot
			j := e.jobs.at(i)
			e.work++
			if j.id > w.last {
				w.at++
				continue
			}
			if w.Refused = e.sweep(now, w, i, j); w.Refused != OK {
				return false
			}
			w.Done++
			w.again = w.again || w.at > 0
		case w.again: // a job that takes the place of another may have gone before w.at
			w.at, w.again = 0, false
		default:
			return false
		}
	}
	return true
}

// sweep deals with one job.
func (e *Engine) sweep(now int64, w *Sweep, i slot, j *job) Outcome {
	t := e.tubeOfJob(j)
	if w.to != "" {
		return e.move(now, i, j, w.to)
	}
	if o := e.admit(JobDeleted, t, j.bodyLen); o != OK {
		return o
	}
	e.emit(JobDeleted, j)
	e.drop(i, j)
	return OK
}

// move puts a job that is not reserved into another tube.
func (e *Engine) move(now int64, i slot, j *job, name string) Outcome {
	if !e.hasRoomForTube([]byte(name)) {
		return OutOfMemory
	}
	from, to := e.tubeOfJob(j), e.tubeNamed(name)
	o := OutOfMemory
	if e.hasRoom(to, j.bodyLen, false) {
		o = e.admit(JobMoved, to, j.bodyLen)
	}
	if o != OK {
		e.release(to) // it may have been made for this
		return o
	}
	e.detach(i, j)
	from.bytes -= int64(j.bodyLen)
	to.bytes += int64(j.bodyLen)
	j.tube = to.num
	e.emitMoved(j, from)
	e.attach(i, j)
	if j.state == Ready {
		e.match(now, to)
	}
	e.release(from)
	return OK
}

// heapOf returns the jobs of a tube in the state Ready, Delayed or Buried, or nil.
func (t *tube) heapOf(state State) *jobHeap {
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
