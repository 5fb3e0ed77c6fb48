package engine

// An Alteration says what is to change of a job. What is nil stays as it is.
type Alteration struct {
	Pri   *uint32
	TTR   *uint32 // s; 0 becomes 1
	Delay *uint32 // s from now on; 0 makes the job ready. A buried job has none
}

// AlterJob changes a job that is ready, delayed or buried.
func (e *Engine) AlterJob(now int64, id uint64, a Alteration) Outcome {
	i, j := e.lookup(id)
	if i == none || j.state() == Reserved || j.state() == Buried && a.Delay != nil {
		return NotFound
	}
	t := e.tubeOfJob(j)
	if o := e.admit(JobState, t, j.bodyLen); o != OK {
		return o
	}
	if j.state() == Buried { // whose place in the order is its rank
		a.apply(j)
		e.emitState(i, j)
		return OK
	}
	e.detach(t, j)
	a.apply(j)
	if a.Delay != nil {
		e.setDelay(now, j, *a.Delay)
	}
	e.emitState(i, j)
	if j.state() == Ready {
		e.makeReady(now, t, i, j)
	} else {
		e.attach(t, i, j)
	}
	return OK
}

// apply changes the fields that the place of a job does not follow from.
func (a *Alteration) apply(j *job) {
	if a.Pri != nil {
		j.pri = *a.Pri
	}
	if a.TTR != nil {
		j.ttr = max(*a.TTR, 1)
	}
}

// setDelay begins or ends the delay of a detached job.
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

// MoveJob moves a job that is ready, delayed or buried to another tube, as a Sweep does.
func (e *Engine) MoveJob(now int64, id uint64, to string) Outcome {
	i, j := e.lookup(id)
	if i == none || j.state() == Reserved || e.tubeOfJob(j).name == to {
		return NotFound
	}
	return e.move(now, i, j, to)
}
