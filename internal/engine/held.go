package engine

// A heldList contains the jobs that a session has reserved, the oldest reservation first.
// They become ready in this order when the session ends. The list links the job records,
// so that a session with a million jobs can be closed in slices, without sorting.
//
// I14. The list contains exactly the jobs of Session.reserved.
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
