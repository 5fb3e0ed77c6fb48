package engine

// A Kick is the progress of a kick, which can take many turns. BeginKick decides whether
// it kicks buried or delayed jobs, and the maximum number of jobs. So a kick ends even if
// workers bury jobs as fast as it kicks them.
type Kick struct {
	Kicked  uint32  // number of jobs so far
	Refused Outcome // reason why the Log refused the next job, or OK
	left    uint32  // jobs to kick
	from    State   // Buried or Delayed
	tube    *tube   // a removed tube has no jobs
}

// BeginKick prepares a kick of up to n jobs in the used tube. It selects the buried jobs,
// the first buried first. If there are none, it selects the delayed jobs, the first due
// first. ContinueKick makes the changes.
func (e *Engine) BeginKick(s *Session, n uint32) Kick {
	from := Delayed
	if s.use.buried.n > 0 {
		from = Buried
	}
	return Kick{tube: s.use, from: from, left: uint32(min(int64(n), int64(s.use.queueOf(from).n)))}
}

// ContinueKick executes a slice of a kick and reports whether more jobs remain. A kick
// ends early only if the Log refuses a change.
func (e *Engine) ContinueKick(now int64, k *Kick) (more bool) {
	from := k.tube.queueOf(k.from)
	for n := 0; k.left > 0; n++ {
		if e.enoughChanges(n) {
			return true
		}
		if from.n == 0 {
			break
		}
		if k.Refused = e.kickOne(now, from.top()); k.Refused != OK {
			break
		}
		k.Kicked++
		k.left--
	}
	k.left = 0
	return false
}

// Kick executes a whole kick at once, however long it takes, and returns the number of
// jobs made ready.
func (e *Engine) Kick(now int64, s *Session, n uint32) (kicked uint32) {
	k := e.BeginKick(s, n)
	for e.ContinueKick(now, &k) {
	}
	return k.Kicked
}

// KickJob makes a buried or delayed job of any tube ready.
func (e *Engine) KickJob(now int64, id uint64) Outcome {
	i, j := e.lookup(id)
	if i == none || j.state() != Buried && j.state() != Delayed {
		return NotFound
	}
	return e.kickOne(now, i)
}

func (e *Engine) kickOne(now int64, i slot) Outcome {
	j := e.jobs.at(i)
	t := e.tubeOfJob(j)
	if o := e.admit(JobState, t, j.bodyLen); o != OK {
		return o
	}
	e.detach(t, i, j)
	c := e.jobs.cold(j)
	c.kicks++
	c.when = now
	j.setState(Ready)
	e.emitState(i, j)
	e.makeReady(now, t, i, j)
	return OK
}
