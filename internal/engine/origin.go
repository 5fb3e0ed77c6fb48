package engine

// I27. Only jobs that a policy has moved to a dead tube have an origin: the tube in which
// they were exhausted. Origins are in a table, and in the job's record of the Log. A
// command that moves the job removes its origin.

// setOrigin sets the origin of a job. An empty origin removes it.
func (e *Engine) setOrigin(id uint64, tube string) {
	if tube == "" {
		e.origins.remove(id)
	} else {
		e.origins.set(id, tube)
	}
}

// RedriveJob moves a buried or ready job to another tube and makes it ready. If to is
// empty, the destination is the job's origin. For a buried job, it counts as a kick,
// which grants the same number of attempts again. A job that was kicked in the dead tube
// already has these attempts.
func (e *Engine) RedriveJob(now int64, id uint64, to string) Outcome {
	i, j := e.lookup(id)
	if i == none || j.state() != Buried && j.state() != Ready {
		return NotFound
	}
	if to == "" {
		to = e.origins.of[id]
	}
	from := e.tubeOfJob(j)
	if to == "" || to == from.name {
		return NotFound
	}
	t, o := e.roomIn(to, j)
	if o != OK {
		return o
	}
	was := e.origins.of[id]
	e.setOrigin(id, "")
	e.moveTo(i, j, t, was, func() {
		c := e.jobs.cold(j)
		c.when = now
		if j.state() == Buried {
			c.Kicks++
		}
		j.setState(Ready)
	})
	e.offer(now, t, i, j)
	e.removeIfUnused(from)
	return OK
}

// hasOrigin reports whether the job in slot i has an origin.
func (e *Engine) hasOrigin(i slot) bool { return i != none && e.origins.of[e.jobs.at(i).id] != "" }
