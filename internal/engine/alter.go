package engine

// An Alteration is a change of a job. A nil field leaves the job's value unchanged.
type Alteration struct {
	Pri   *uint32
	TTR   *uint32 // in seconds; 0 becomes 1
	Delay *uint32 // in seconds from now; 0 makes the job ready. A buried job has none
	Body  *[]byte // must not change until the turn's Changes are written
}

// AlterJob changes a job that is ready, delayed or buried. It makes all changes or none.
func (e *Engine) AlterJob(now int64, id uint64, a Alteration) Outcome {
	i, j := e.lookup(id)
	if i == none || j.state() == Reserved || j.state() == Buried && a.Delay != nil {
		return NotFound
	}
	t := e.tubeOfJob(j)
	if o := e.admitAlteration(t, j, &a); o != OK {
		return o
	}
	e.detach(t, i, j)
	if a.Pri != nil {
		j.pri = *a.Pri
	}
	if a.TTR != nil {
		j.ttr = max(*a.TTR, 1)
	}
	if a.Delay != nil {
		e.setDelay(now, j, *a.Delay)
	}
	e.emitAltered(t, i, j, &a)
	e.offer(now, t, i, j)
	return OK
}

// admitAlteration checks the limits and asks the Log for space. A body that does not grow
// is always within the limits.
func (e *Engine) admitAlteration(t *tube, j *job, a *Alteration) Outcome {
	if a.Body == nil {
		return e.admit(JobState, t, j.bodyLen)
	}
	n := uint32(len(*a.Body))
	if o := e.room(t, n, 0, int64(n)-int64(j.bodyLen), memoryOf(n)-memoryOf(j.bodyLen)); o != OK {
		return o
	}
	return e.admit(JobMoved, t, n)
}

// emitAltered stores the job's new body, if any, and emits the change. A change with a
// body describes the whole job and replaces the job's record in the Log.
func (e *Engine) emitAltered(t *tube, i slot, j *job, a *Alteration) {
	if a.Body == nil {
		e.emitState(i, j)
		return
	}
	before, n := j.bodyLen, uint32(len(*a.Body))
	e.turnWork += int(n) / bytesPerUnit
	e.bodies.free(j.bodySlot, before)
	j.bodyLen, j.bodySlot = n, e.bodies.put(*a.Body)
	t.bytes += int64(n) - int64(before)
	e.stats.Bytes += uint64(n) - uint64(before)
	e.emitMoved(i, j, t, int(before), e.origins.of[j.id])
	e.keys.remove(i)
	if t.keyed {
		e.noteKey(t, i, j)
	}
}

// setDelay starts or ends the delay of a detached job.
func (e *Engine) setDelay(now int64, j *job, delay uint32) {
	c := e.jobs.cold(j)
	if delay > 0 || j.state() == Delayed {
		c.when = now + int64(delay)*second
	}
	j.delayAndCounts = delay
	j.setState(Ready)
	if delay > 0 {
		j.setState(Delayed)
	}
}

// MoveJob moves a ready, delayed or buried job to another tube, as a Sweep does.
func (e *Engine) MoveJob(now int64, id uint64, to string) Outcome {
	i, j := e.lookup(id)
	if i == none || j.state() == Reserved || e.tubeOfJob(j).name == to {
		return NotFound
	}
	return e.move(now, i, j, to)
}
