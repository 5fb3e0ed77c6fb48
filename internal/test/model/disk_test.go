package model

// What is applied, what is kept, and what a crash takes.

// apply lets the journal have the next committed entry and, unless it has decided it, the engine.
func (w *world) apply(m int) {
	a := &w.s.members[m]
	if a.spoilt || a.applied >= a.commit || a.applied+1 > a.last || w.s.installs(m) {
		return
	}
	if a.decides != 0 && a.epoch != a.decides && w.planted != "an entry is applied though the epoch is over" {
		return // the entry may be of another leader: the turn sees first that its epoch is over
	}
	w.step("%d applies %d", m, a.applied+1)
	n := &w.next.members[m]
	n.take()
	if w.planted == "the last entry of another leader is skipped" && a.leads && n.applied < a.commit {
		if next := a.log[n.applied+1]; next.fact == 0 && next.term == a.term {
			n.engine = a.engine
			n.take()
		}
	}
	w.done()
}

func (m *member) take() {
	m.applied++
	f := m.log[m.applied].fact
	m.journal.apply(f)
	if m.decides == 0 && m.applied > m.kept {
		m.engine.apply(f)
	}
}

// clean writes a job again whose record is in an old segment.
func (w *world) clean(m, job int) {
	if a := &w.s.members[m]; w.planted == "cleaning takes jobs from the engine" && a.journal[job] != a.engine[job] && a.engine[job] != gone && a.journal[job] != never {
		w.step("%d cleans job %d", m, job)
		w.next.members[m].journal[job] = a.engine[job]
		w.done()
	}
}

// cutLog syncs the journal, and removes from the log what it has.
func (w *world) cutLog(m int) {
	a := &w.s.members[m]
	if a.cut == a.applied || w.s.installs(m) {
		return
	}
	w.step("cut the log of %d after %d", m, a.applied)
	n := &w.next.members[m]
	n.cut = a.applied
	if w.planted != "the log is cut at a mark that is not synced" {
		n.syncedMark, n.syncedQueue = a.applied, a.journal
	}
	w.done()
}

// crash ends the process and starts it again. A power cut takes what was not synced of log and journal, or,
// of the journal, all but the records of the next entry, without their mark.
func (w *world) crash(m int, power, part bool) {
	a := &w.s.members[m]
	if w.s.crashes == 0 || part && (!power || a.syncedMark >= a.applied || w.s.installs(m)) {
		return
	}
	w.step("%d crashes, power: %v, part of an entry stays: %v", m, power, part)
	w.next.crashes--
	n := &w.next.members[m]
	if power {
		n.last, n.applied, n.journal = a.synced, a.syncedMark, a.syncedQueue
		for i := n.last + 1; i < logSize; i++ {
			n.log[i] = entry{}
		}
		if w.planted == "the mark is before its facts" {
			n.applied = a.applied
		}
		if part {
			n.journal.apply(a.log[a.syncedMark+1].fact)
			n.whole = max(n.whole, n.applied+1)
		}
		n.syncedQueue = n.journal
	}
	if k := w.s.snapshot; k.restored && int(k.to) == m {
		w.next.takeOver(n)
	} else if k.active && int(k.to) == m {
		w.next.snapshot = snapshot{}
	}
	n.restart(w)
	w.done()
}

func (m *member) restart(w *world) {
	if m.applied < m.cut {
		w.wrong("the journal ends at %d, and the log begins after %d", m.applied, m.cut)
	}
	if m.last < m.applied { // the log is the cut, and empty
		copy(m.log[1:m.applied+1], w.s.committed[1:m.applied+1])
		m.last, m.cut = m.applied, m.applied
	}
	m.synced, m.syncedMark = m.last, m.applied
	m.commit = m.applied
	m.engine = m.journal
	m.leads, m.epoch, m.resigned, m.barriers, m.own, m.owns = false, 0, false, 1, [boxSize]uint8{}, 0
	m.undone, m.ownTo, m.kept = false, 0, 0
	m.epochs, m.decides, m.spoilt, m.executed, m.execs = 0, 0, false, [boxSize]fact{}, 0
	m.box, m.letters = [boxSize]letter{}, 0
}
