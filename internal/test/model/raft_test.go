package model

// What Raft does, in steps that are as large as possible.

// elect makes a member leader with the vote of another one.
func (w *world) elect(m, voter int) {
	s := &w.s
	a, b := &s.members[m], &s.members[voter]
	if s.terms == 0 || m == voter || s.installs(m) || a.last+1 >= logSize {
		return
	}
	if w.s.terms == w.bounds.terms && (m != 0 || voter != 1) { // the members are equal, and their names do not matter
		return
	}
	if last, other := a.log[a.last].term, b.log[b.last].term; last < other || last == other && a.last < b.last {
		return
	}
	w.step("elect %d with %d", m, voter)
	n := &w.next
	n.terms--
	term := uint8(0)
	for i := range n.members {
		term = max(term, n.members[i].term)
	}
	n.members[m].learn(term+1, w.planted)
	n.members[voter].learn(term+1, w.planted)
	leader := &n.members[m]
	leader.leads = true
	leader.append(entry{term: term + 1})
	w.done()
}

// learn tells a member of a term. The core's epoch is over; the turn does not know yet.
func (m *member) learn(term uint8, planted string) {
	if term > m.term {
		m.loseEpoch(planted)
		m.term, m.leads, m.resigned, m.barriers = term, false, false, 1
		m.own, m.owns = [boxSize]uint8{}, 0
	}
}

func (m *member) append(e entry) {
	m.last++
	m.log[m.last] = e
}

// copyLog lets a follower have the leader's log, and what the leader knows of it.
func (w *world) copyLog(leader, follower int) {
	s := &w.s
	l, f := &s.members[leader], &s.members[follower]
	if !l.leads || leader == follower || l.term < f.term {
		return
	}
	same := uint8(0)
	for same < min(l.last, f.last) && l.log[same+1] == f.log[same+1] {
		same++
	}
	if same < l.cut { // it needs entries that the leader has not any more
		return
	}
	commit := max(f.commit, min(l.commit, l.last))
	if l.term == f.term && same == l.last && commit == f.commit {
		return
	}
	w.step("copy %d to %d", leader, follower)
	n := &w.next.members[follower]
	n.learn(l.term, w.planted)
	n.commit = commit
	if same < l.last {
		n.log, n.last = l.log, l.last
		n.synced = min(n.synced, same)
	}
	w.done()
}

func (w *world) syncLog(m int) {
	if a := &w.s.members[m]; a.synced < a.last {
		w.step("sync the log of %d", m)
		w.next.members[m].synced = a.last
		w.done()
	}
}

// commit lets a leader see what a majority has.
func (w *world) commit(leader int) {
	l := &w.s.members[leader]
	if !l.leads {
		return
	}
	for at := l.last; at > l.commit && l.log[at].term == l.term; at-- {
		have := 0
		for i := range w.s.members {
			f := &w.s.members[i]
			durable := f.synced
			if w.planted == "an append is answered before its sync" {
				durable = f.last
			}
			if f.term == l.term && durable >= at && f.log[at] == l.log[at] {
				have++
			}
		}
		if have*2 > members {
			w.step("commit %d at %d", at, leader)
			w.next.members[leader].commit = at
			w.agree(l, at)
			w.done()
			return
		}
	}
}

// agree notes what is committed for ever.
func (w *world) agree(l *member, at uint8) {
	n := &w.next
	for i := uint8(1); i <= at; i++ {
		if i > n.commits {
			n.committed[i], n.commits = l.log[i], i
		}
		if n.committed[i] != l.log[i] {
			w.wrong("entry %d is %+v, and %+v was committed before", i, l.log[i], n.committed[i])
		}
	}
}
