package engine

// A job that is not reserved is stale if its policy must end it, because it has expired,
// or has used its only attempt, for example before a crash. A stale job is never
// reserved.
//
// A staleSweep searches all jobs for stale jobs, one page of the slab at a time, and ends
// them. A pass takes a minute, or longer if there are more stale jobs than the turns can
// end.
//
// I26. tubes counts the tubes whose policies make jobs stale. If it is not 0, due is set.
type staleSweep struct {
	tubes int
	due   int64 // time of the next page, or Never
	place slot  // position of the current pass
	began int64 // start of the current pass; Never if there is none
	pass  int64 // stalePass in ns, or less in tests
	most  int   // maximum number of jobs that a command ends; maxLoggedSlice, or more in tests
}

const stalePass = 60 * second

// singleAttempt reports whether the policy permits only one attempt.
func (p *Policy) singleAttempt() bool { return p != nil && p.MaxAttempts == 1 }

// stales reports whether the policy can make jobs stale.
func (p *Policy) stales() bool {
	return p != nil && (p.TTL > 0 || p.KeepBuried > 0 || p.singleAttempt())
}

// countStales records that a tube's policy changes from before to after.
func (e *Engine) countStales(before, after *Policy) {
	w := &e.staleSweep
	if before.stales() {
		w.tubes--
	}
	if after.stales() {
		w.tubes++
	}
	if w.tubes > 0 && w.due == Never {
		w.due, w.place, w.began = e.now, 0, Never
	}
}

// stale returns the reason why a job that is not reserved is stale, or NumPolicyEvents.
func (e *Engine) stale(now int64, p *Policy, j *job) PolicyEvent {
	switch age := now - j.created; {
	case e.claiming: // a client of an earlier leader might hold it
	case j.state() == Buried:
		if p.KeepBuried > 0 && age >= p.KeepBuried {
			return BuriedTooLong
		}
	case p.singleAttempt() && e.hadAttempt(j):
		return OutOfAttempts
	case p.TTL > 0 && age >= p.TTL:
		return Expired
	}
	return NumPolicyEvents
}

// hadAttempt reports whether a job has used its only attempt, and the additional attempt
// of each allowance.
func (e *Engine) hadAttempt(j *job) bool {
	c := e.jobs.coldOf(j)
	return c.Reserves > c.allowances(j.state())
}

// reservable reports whether the first ready job of a tube with a policy can be reserved.
// If the job is stale, reservable ends it. If the Log refuses that, or if the n jobs that
// have already ended are enough for a turn, reservable shuts the tube.
func (e *Engine) reservable(now int64, t *tube, i slot, j *job, n int) bool {
	if t.policy == nil || t.gate == nil {
		return true
	}
	switch why := e.stale(now, t.policy, j); {
	case why == NumPolicyEvents:
		return true
	case n >= e.staleSweep.most:
		e.shutGate(t, e.now)
	case !e.finishJob(why, t, i, j, 0, nil):
		e.shutByLog(t)
	}
	return false
}

// admitAttempt reports whether the Log admits the reservation of a job, if the
// reservation is a Change. Otherwise it shuts the tube.
func (e *Engine) admitAttempt(t *tube, j *job) bool {
	if !t.policy.singleAttempt() || e.admit(JobState, t, j.bodyLen) == OK {
		return true
	}
	e.notePolicy(PolicyAct{PolicySkipped, t.name, j.id, ""})
	e.shutByLog(t)
	return false
}

// endStale reports whether a job that is reserved by id is stale, and ends it. A buried
// job stays buried, but cannot be reserved if it has used its attempt.
func (e *Engine) endStale(now int64, t *tube, i slot, j *job) bool {
	if j.state() == Buried {
		return t.policy.singleAttempt() && e.hadAttempt(j)
	}
	why := e.stale(now, t.policy, j)
	if why != NumPolicyEvents {
		e.finishJob(why, t, i, j, 0, nil)
	}
	return why != NumPolicyEvents
}

// sweepStale searches a page of the slab for stale jobs, and ends as many as the turn
// permits.
func (e *Engine) sweepStale(now int64) {
	w := &e.staleSweep
	places := e.jobs.places()
	switch {
	case w.began != Never && (w.place < places || now < w.began+w.pass):
	case w.tubes == 0:
		w.due = Never
		return
	default:
		w.began, w.place = now, 0
	}
	for n, onPage := 0, false; w.place < places && (!onPage || w.place%slotsPerPage > 0); {
		if n >= minSlice && e.tickSpent() || e.enoughChanges(n) {
			w.due = now
			return
		}
		i, next, ok := e.jobs.next(w.place)
		if w.place, onPage = next, onPage || ok; !ok {
			continue
		}
		j := e.jobs.at(i)
		if t := e.tubeOfJob(j); t.policy != nil && j.state() != Reserved {
			if why := e.stale(now, t.policy, j); why != NumPolicyEvents && e.finishJob(why, t, i, j, 0, nil) {
				n++
			}
		}
	}
	e.turnWork += slotsPerPage / stepsPerUnit
	if w.place < places {
		w.due = w.began + w.pass*int64(w.place/slotsPerPage)/int64(len(e.jobs.pages))
		return
	}
	w.due = min(w.began+w.pass, now+w.pass/16) // this pass must also visit pages added since
}
