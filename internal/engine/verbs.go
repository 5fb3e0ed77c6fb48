package engine

// Delete removes a job that is ready, delayed, buried, or reserved by this
// session.
func (e *Engine) Delete(s *Session, id uint64) Outcome {
	i, j := e.lookup(id)
	if i == none || j.state() == Reserved && e.jobs.held(j).holder != s.num {
		return NotFound
	}
	return e.delete(i, j)
}

// A DeleteBatch is the progress of deleting many jobs. If the Log refuses a deletion, the
// remaining jobs are kept.
type DeleteBatch struct {
	IDs      []uint64               // remaining ids
	May      func(tube string) bool // reports whether the client may delete jobs of a tube; other jobs count as not found. If it is nil, the client may delete all jobs
	Deleted  uint64                 // number of jobs so far
	NotFound uint64                 // number of ids so far
	Refused  Outcome                // reason why the Log refused a job, or OK
}

// ContinueDeleteBatch executes a slice of a batch and reports whether more ids remain.
func (e *Engine) ContinueDeleteBatch(s *Session, d *DeleteBatch) (more bool) {
	for n := 0; len(d.IDs) > 0; n++ {
		if e.enoughChanges(n) {
			return true
		}
		if n%idsPerUnit == 0 {
			e.turnWork++
		}
		o, may := NotFound, d.May == nil
		if !may {
			tube, ok := e.TubeOf(d.IDs[0])
			may = ok && d.May(tube)
		}
		if may {
			o = e.Delete(s, d.IDs[0])
		}
		switch o {
		case OK:
			d.Deleted++
		case NotFound:
			d.NotFound++
		default:
			d.Refused = o
			return false
		}
		d.IDs = d.IDs[1:]
	}
	return false
}

// DeleteJob deletes an unreserved job without a session.
func (e *Engine) DeleteJob(id uint64) Outcome {
	i, j := e.lookup(id)
	if i == none || j.state() == Reserved {
		return NotFound
	}
	return e.delete(i, j)
}

func (e *Engine) delete(i slot, j *job) Outcome {
	t := e.tubeOfJob(j)
	if o := e.admit(JobDeleted, t, j.bodyLen); o != OK {
		return o
	}
	if j.state() == Reserved {
		e.endWork(t, j)
	}
	t.counts.Deletes++
	e.stats.Deletes++
	e.emitDeleted(t, i, j)
	e.removeJob(i, j)
	return OK
}

// Release returns a job that this session has reserved, with a new priority. delay is in
// seconds.
func (e *Engine) Release(now int64, s *Session, id uint64, pri, delay uint32) Outcome {
	i, j := e.lookupHeld(s, id)
	if i == none {
		return NotFound
	}
	return e.release(now, i, j, releaseTerms{pri, delay, Release})
}

// ReleaseJob releases a job that any session has reserved. For the session, this is like
// a timeout.
func (e *Engine) ReleaseJob(now int64, id uint64, pri, delay uint32) Outcome {
	i, j := e.lookup(id)
	if i == none || j.state() != Reserved {
		return NotFound
	}
	return e.release(now, i, j, releaseTerms{pri, delay, Taken})
}

func (e *Engine) release(now int64, i slot, j *job, as releaseTerms) Outcome {
	t := e.tubeOfJob(j)
	snoozes := e.snoozes(t, as)
	if p := t.policy; p != nil && p.Limited() && !snoozes && e.exhaust(t, i, j, Release, &as) {
		return OK
	}
	if o := e.admit(JobState, t, j.bodyLen); o != OK {
		return o
	}
	e.released(t, j, as)
	if f, _, _ := e.failureOf(i).decode(); !snoozes {
		e.noteEnd(i, j, as.end)
	} else if f.End == 0 {
		e.setFailure(i, nil) // the note of this attempt
	}
	at := now + int64(as.delay)*second
	if t.policy != nil && as.delay == 0 {
		at += e.retryDelay(t, j, Release)
	}
	e.endReservation(now, t, i, j, at)
	return OK
}

// Bury buries a job that this session has reserved, with a new priority, until it
// is kicked.
func (e *Engine) Bury(s *Session, id uint64, pri uint32) Outcome {
	i, j := e.lookupHeld(s, id)
	if i == none {
		return NotFound
	}
	return e.bury(i, j, pri, Bury)
}

// BuryJob buries a job that is ready, delayed, or reserved by any session. For the
// session, this is like a timeout.
func (e *Engine) BuryJob(id uint64, pri uint32) Outcome {
	i, j := e.lookup(id)
	if i == none || j.state() == Buried {
		return NotFound
	}
	return e.bury(i, j, pri, Taken)
}

func (e *Engine) bury(i slot, j *job, pri uint32, end Ends) Outcome {
	t := e.tubeOfJob(j)
	if o := e.admit(JobState, t, j.bodyLen); o != OK {
		return o
	}
	if j.state() == Reserved {
		e.endWork(t, j)
		e.fails(t)
		e.noteEnd(i, j, end)
	}
	e.detach(t, i, j)
	j.pri = pri
	e.makeBuried(t, i, j, "")
	e.emitState(i, j)
	e.attachBuried(t, i, j)
	return OK
}

// fails counts a failed attempt of a job in a tube.
func (e *Engine) fails(t *tube) {
	t.counts.Failed++
	e.stats.Failed++
}

// makeBuried makes a detached job the last buried job of its tube. policy is the setting
// that caused it, or empty.
func (e *Engine) makeBuried(t *tube, i slot, j *job, policy string) {
	c := e.jobs.cold(j)
	c.Buries++
	t.counts.Buries++
	e.buried++
	c.when = e.buried
	j.setState(Buried)
	e.noteBurial(i, j, policy)
}

// attachBuried attaches a job that makeBuried has changed, after its Change is emitted.
func (e *Engine) attachBuried(t *tube, i slot, j *job) {
	e.jobs.pack(j, e.jobs.cold(j))
	e.attach(t, i, j)
}

// KickJob makes a buried or delayed job of any tube ready.
func (e *Engine) KickJob(now int64, id uint64) Outcome {
	i, j := e.lookup(id)
	if i == none || j.state() != Buried && j.state() != Delayed {
		return NotFound
	}
	return e.kick(now, i, j)
}

// kick makes a buried or delayed job ready.
func (e *Engine) kick(now int64, i slot, j *job) Outcome {
	t := e.tubeOfJob(j)
	if o := e.admit(JobState, t, j.bodyLen); o != OK {
		return o
	}
	e.detach(t, i, j)
	c := e.jobs.cold(j)
	c.Kicks++
	c.when = now
	j.setState(Ready)
	e.emitState(i, j)
	e.offer(now, t, i, j)
	return OK
}

// Touch restarts the TTR of a job that this session has reserved.
func (e *Engine) Touch(now int64, s *Session, id uint64) Outcome {
	i, j := e.lookupHeld(s, id)
	if i == none {
		return NotFound
	}
	e.extend(s, i, j, now+int64(j.ttr)*second) // the new time is later, so the timer can stay
	return OK
}

// extend moves the end of a reservation's TTR, and counts a touch.
func (e *Engine) extend(s *Session, i slot, j *job, due int64) {
	c := e.jobs.held(j)
	c.touches++
	s.reserved.remove(i, j)
	c.due = due
	s.reserved.push(dueKey(due, j.id), i, j)
}

// Pause prevents reserves from a tube for the given number of seconds. All other commands
// still work. A second pause replaces the first, and 0 ends it.
func (e *Engine) Pause(now int64, name []byte, seconds uint32) Outcome {
	t := e.byName[string(name)]
	if t == nil {
		return NotFound
	}
	if o := e.admit(TubePaused, t, 0); o != OK {
		return o
	}
	t.counts.Pauses++
	e.pause(t, now+int64(seconds)*second, seconds)
	e.emit(pauseOf(t))
	if seconds == 0 {
		e.unpause(now, t)
	}
	return OK
}

func (e *Engine) pause(t *tube, until int64, seconds uint32) {
	t.paused, t.shut, t.resuming = true, true, false
	t.pauseLen = seconds
	t.unpauseAt = until
	e.arm(&t.timer, until)
}

// unpause ends a pause and serves the workers that wait for ready jobs. If they are too
// many for one turn, the tube stays paused until Tick has served them all, so that no
// later worker precedes them.
func (e *Engine) unpause(now int64, t *tube) {
	for n := 0; !t.gateShut() && e.serve(now, t); n++ {
		if n >= minSlice && e.tickSpent() {
			t.resuming, t.unpauseAt = true, now
			e.arm(&t.timer, now)
			return
		}
	}
	t.paused, t.resuming, t.keptByPause, t.pauseLen = false, false, false, 0
	t.shut = t.gateShut()
	e.removeIfUnused(t)
}
