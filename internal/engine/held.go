package engine

// A heldList is the jobs that a session has reserved, the oldest reservation
// first: the order in which they become ready when the session goes. It runs
// through the records of the jobs, so that a session with a million of them
// can be closed in slices, without sorting first.
//
// I14. It has the jobs of the session's reserved heap, and no others.
type heldList struct{ first, last slot }

func (l *heldList) push(jobs *jobSlab, i slot) {
	j := jobs.at(i)
	j.heldBefore, j.heldAfter = l.last, none
	if l.last != none {
		jobs.at(l.last).heldAfter = i
	} else {
		l.first = i
	}
	l.last = i
}

func (l *heldList) remove(jobs *jobSlab, i slot) {
	j := jobs.at(i)
	if j.heldBefore != none {
		jobs.at(j.heldBefore).heldAfter = j.heldAfter
	} else {
		l.first = j.heldAfter
	}
	if j.heldAfter != none {
		jobs.at(j.heldAfter).heldBefore = j.heldBefore
	} else {
		l.last = j.heldBefore
	}
}
