package engine

// ages says how far the engine has come in its look at all jobs for those that are too old. Such a job is never
// reserved, but somebody has to end those that nobody wants to reserve, too. The look goes through the slab, a
// page at a time, and takes a minute, or longer if there is more to end than the turns can bear.
//
// I26. tubes counts the tubes whose policies end jobs by age. While there are any, due is set.
type ages struct {
	tubes int
	due   int64 // when the next page is looked at, or Never
	place slot  // how far the present pass has come
	began int64 // when it has begun; Never: it has not
	took  int64 // ns; from the beginning of the pass before to that of this one; 0: there was none
	pass  int64 // ns; agePass, or less in tests
	most  int   // jobs that a verb ends; maxLoggedSlice, or more in tests
}

const agePass = 60 * second

// AgePass returns how long the engine took when it last looked at all jobs, in ns: so long a job that is too old
// is there at most. It is 0 if no policy ends jobs by age, and in the first minute.
func (e *Engine) AgePass() int64 { return e.ages.took }

// aged reports whether the policy ends jobs that nobody has reserved.
func (p *Policy) aged() bool { return p != nil && (p.TTL > 0 || p.KeepBuried > 0) }

// countAged notes that a tube has another policy than before.
func (e *Engine) countAged(before, after *Policy) {
	a := &e.ages
	if before.aged() {
		a.tubes--
	}
	if after.aged() {
		a.tubes++
	}
	if a.tubes > 0 && a.due == Never {
		a.due, a.place, a.began, a.took = e.now, 0, Never, 0
	}
}

// age returns why a policy ends a job that is not reserved, or NumPolicyEvents.
func (p *Policy) age(now int64, j *job) PolicyEvent {
	switch age := now - j.created; {
	case j.state() == Buried:
		if p.KeepBuried > 0 && age >= p.KeepBuried {
			return BuriedTooLong
		}
	case p.TTL > 0 && age >= p.TTL:
		return Expired
	}
	return NumPolicyEvents
}

// servable reports whether the first ready job of a tube may be reserved. If not, it has ended it. Or it has shut the
// tube: because the Log refuses that, or because n jobs before it are enough for a turn.
func (e *Engine) servable(now int64, i slot, n int) bool {
	j := e.jobs.at(i)
	t := e.tubeOfJob(j)
	if t.gate == nil || t.policy == nil {
		return true
	}
	switch why := t.policy.age(now, j); {
	case why == NumPolicyEvents:
		return true
	case n >= e.ages.most:
		e.shutGate(t, e.now)
	case !e.end(why, t, i, j, nil):
		e.shutGate(t, e.now+second)
	}
	return false
}

// endAged ends a job that is too old to be reserved by its id, and reports whether it is.
func (e *Engine) endAged(now int64, i slot, j *job) bool {
	t := e.tubeOfJob(j)
	if t.policy == nil || j.state() == Buried {
		return false
	}
	why := t.policy.age(now, j)
	if why == NumPolicyEvents {
		return false
	}
	e.end(why, t, i, j, nil)
	return true
}

// endAllAged looks at a page of the slab for jobs that are too old, and ends them, as many as the turn can bear.
func (e *Engine) endAllAged(now int64) {
	a := &e.ages
	switch {
	case a.place > 0:
	case a.tubes == 0:
		a.due, a.took = Never, 0
		return
	default:
		if a.began != Never {
			a.took = now - a.began
		}
		a.began = now
	}
	pages := slot(len(e.jobs.pages))
	for n, onPage := 0, false; a.place < pages*slotsPerPage && (!onPage || a.place%slotsPerPage > 0); {
		if n >= minSlice && e.tickSpent() || e.enoughChanges(n) {
			a.due = now
			return
		}
		i, ok := e.jobs.slots.nextUsed(a.place)
		if !ok { // nor in the rest of the page, of which there may be nothing
			a.place = (a.place/slotsPerPage + 1) * slotsPerPage
			continue
		}
		a.place, onPage = i+1, true
		j := e.jobs.at(i)
		if t := e.tubeOfJob(j); t.policy != nil && j.state() != Reserved {
			if why := t.policy.age(now, j); why != NumPolicyEvents && e.end(why, t, i, j, nil) {
				n++
			}
		}
	}
	e.turnWork += slotsPerPage / looksPerUnit
	if a.place >= pages*slotsPerPage {
		a.place, a.due = 0, a.began+a.pass
		return
	}
	a.due = a.began + a.pass*int64(a.place/slotsPerPage)/int64(pages)
}
