package model

// What an epoch decides, and how it ends.

// look is core's: after each step a leader that has applied enough is active.
func (m *member) look() {
	if !m.leads || m.epoch != 0 || m.resigned {
		return
	}
	empties := uint8(0)
	for i := uint8(1); i <= m.applied; i++ {
		if m.log[i].fact == 0 && m.log[i].term == m.term {
			empties++
		}
	}
	if empties >= m.barriers {
		m.epochs++
		m.epoch = m.epochs
		m.own, m.owns = [boxSize]uint8{}, 0
	}
}

// activate lets the engine decide.
func (m *member) activate() {
	if m.decides == 0 && !m.spoilt && m.epoch != 0 {
		m.decides = m.epoch
		m.executed, m.execs = [boxSize]fact{}, 0
		m.undone, m.ownTo, m.kept = false, 0, 0
	}
}

// loseEpoch is the end of an epoch in the core. What was decided in it and is not committed may never be.
func (m *member) loseEpoch(planted string) {
	if m.epoch != 0 && m.decides == m.epoch {
		m.ownTo = 0
		if m.owns > 0 {
			m.ownTo = m.own[m.owns-1]
		}
		m.undone = m.ownTo > m.commit || m.execs > m.owns && planted != "what waits for the loop counts as committed"
	}
	m.epoch = 0
}

// reserve lets a turn hand out a job. That is no fact.
func (w *world) reserve(m, job int) {
	if a := &w.s.members[m]; a.decides != 0 && w.s.reserves > 0 && a.engine[job] == ready {
		w.step("%d reserves job %d", m, job)
		w.next.reserves--
		w.next.members[m].engine[job] = reserved
		w.done()
	}
}

// execute lets a turn do something to a job.
func (w *world) execute(m, job int, kind fact) {
	a := &w.s.members[m]
	here := a.engine[job].isThere()
	switch {
	case job > 0 && a.engine[job-1] == never, // ids go up
		a.decides == 0 || w.s.facts == 0 || a.letters == boxSize || a.execs == boxSize,
		kind == put && a.engine[job] != never, kind == bury && (!here || a.engine[job] == buried), kind == del && !here:
		return
	}
	f := factOf(job, kind)
	w.step("%d executes %d of job %d", m, kind, job)
	n := &w.next.members[m]
	w.next.facts--
	n.engine.apply(f)
	if a.epoch != a.decides { // Append sees that, and the turn fails
		n.depose(true)
	} else {
		n.executed[n.execs] = f
		n.execs++
		n.post(letter{epoch: a.decides, fact: f})
	}
	w.done()
}

func (m *member) post(l letter) {
	m.box[m.letters] = l
	m.letters++
}

// depose notes that the epoch of the engine is over. undone: it has done what was not even proposed.
func (m *member) depose(undone bool) {
	m.decides, m.spoilt, m.undone = 0, true, m.undone || undone
}

func (w *world) notice(m int) {
	if a := &w.s.members[m]; a.decides != 0 && a.epoch != a.decides {
		w.step("%d sees that its epoch is over", m)
		w.next.members[m].depose(false)
		w.done()
	}
}

// readLetter is the raft loop: the next letter of its mailbox. Raft may refuse a proposal.
func (w *world) readLetter(m int, refused bool) {
	a := &w.s.members[m]
	if a.letters == 0 || refused && w.s.refusals == 0 || a.last+1 >= logSize {
		return
	}
	l := a.box[0]
	inForce := l.epoch == a.epoch && a.epoch != 0
	if w.planted == "a proposal carries no epoch" {
		inForce = a.epoch != 0
	}
	if refused && (l.rebuilt || !inForce) {
		return
	}
	w.step("the loop of %d takes %+v, refused: %v", m, l, refused)
	n := &w.next.members[m]
	copy(n.box[:], a.box[1:])
	n.letters--
	n.box[n.letters] = letter{}
	switch {
	case l.rebuilt:
		if a.resigned && a.leads {
			n.append(entry{term: a.term})
			n.barriers++
			n.resigned = false
		}
	case refused:
		w.next.refusals--
		if w.planted != "a refused proposal leaves a hole" {
			n.loseEpoch(w.planted)
			n.resigned = true
		}
	case inForce && a.owns < boxSize:
		n.append(entry{a.term, l.fact})
		n.own[n.owns] = n.last
		n.owns++
	}
	w.done()
}

// endEpoch makes an engine whose epoch is over one that follows: it reads the journal into another engine, or keeps this one
// if all that it has done is committed.
func (w *world) endEpoch(m int) {
	a := &w.s.members[m]
	if !a.spoilt || a.letters == boxSize || w.s.installs(m) {
		return
	}
	if a.undone && w.planted != "the engine is kept when the epoch ends" {
		w.step("%d reads its journal again", m)
		n := &w.next.members[m]
		n.engine, n.kept = a.journal, 0
	} else {
		w.step("%d keeps its engine", m)
		n := &w.next.members[m]
		n.kept = a.ownTo
		if w.planted != "a kept engine keeps its reservations" {
			n.engine.dropSessions()
		}
	}
	n := &w.next.members[m]
	n.spoilt, n.undone, n.ownTo = false, false, 0
	n.post(letter{rebuilt: true})
	w.done()
}

// checkReplies looks at the replies that may go: their entries are committed.
func (w *world) checkReplies(m *member) {
	if m.decides == 0 || m.decides != m.epoch {
		return
	}
	for i := range min(m.execs, m.owns) {
		if index := m.own[i]; index <= m.commit && w.next.committed[index].fact != m.executed[i] {
			w.wrong("%d is acknowledged as entry %d, which is %d", m.executed[i], index, w.next.committed[index].fact)
		}
	}
}
