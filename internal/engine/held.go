package engine

// A heldList is the jobs that a session has reserved, the oldest reservation
// first: the order in which they become ready when the session goes. It runs
// through the records of the jobs, so that a session with a million of them
// can be closed in slices, without sorting first.
//
// I14. It has the jobs of the session's reserved heap, and no others.
type heldList struct{ first, last slot }

func (l *heldList) push(jobs *jobSlab, i slot, c *coldJob) {
	c.heldBefore, c.heldAfter = l.last, none
	if l.last != none {
		jobs.heldAt(l.last).heldAfter = i
	} else {
		l.first = i
	}
	l.last = i
}

func (l *heldList) remove(jobs *jobSlab, c *coldJob) {
	if c.heldBefore != none {
		jobs.heldAt(c.heldBefore).heldAfter = c.heldAfter
	} else {
		l.first = c.heldAfter
	}
	if c.heldAfter != none {
		jobs.heldAt(c.heldAfter).heldBefore = c.heldBefore
	} else {
		l.last = c.heldBefore
	}
}
