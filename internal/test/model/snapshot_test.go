package model

// Catching up: a copy of the leader's journal, beside what everybody does, and then the log.

// fetch lets a member begin to fetch a snapshot: its next entry is cut at the leader.
func (w *world) fetch(from, to int) {
	l, t := &w.s.members[from], &w.s.members[to]
	if w.s.snapshots == 0 || w.s.snapshot.active || !l.leads || t.leads || l.term < t.term || t.last >= l.cut {
		return
	}
	w.step("%d fetches a snapshot from %d", to, from)
	w.next.snapshots--
	k := snapshot{active: true, to: uint8(to), at: l.applied, whole: l.whole, queue: l.journal}
	if w.planted == "a snapshot is of the engine" {
		for i, job := range l.engine {
			k.queue[i] = job.committed()
		}
	}
	w.next.snapshot = k
	w.done()
}

// restore gives Raft the snapshot, and cuts the log there if it is wanted.
func (w *world) restore() {
	k := w.s.snapshot
	if !k.active || k.restored {
		return
	}
	t := &w.s.members[k.to]
	wanted := !t.leads && t.commit < k.at && (t.last < k.at || t.log[k.at] != w.s.committed[k.at])
	if !wanted {
		w.step("%d does not want its snapshot", k.to)
		w.next.snapshot = snapshot{}
		w.done()
		return
	}
	w.step("%d restores its snapshot up to %d", k.to, k.at)
	w.next.snapshot.restored = true
	n := &w.next.members[k.to]
	n.last, n.synced, n.cut, n.commit = k.at, k.at, k.at, k.at
	n.log = [logSize]entry{}
	copy(n.log[1:k.at+1], w.s.committed[1:k.at+1])
	w.done()
}

// install lets the snapshot take the place of the journal.
func (w *world) install() {
	k := w.s.snapshot
	if !k.restored || w.s.members[k.to].decides != 0 {
		return
	}
	t := &w.s.members[k.to]
	if t.spoilt && t.letters == boxSize {
		return
	}
	w.step("%d installs its snapshot", k.to)
	n := &w.next.members[k.to]
	w.next.takeOver(n)
	n.engine, n.kept = n.journal, 0
	if n.spoilt {
		n.post(letter{rebuilt: true})
	}
	n.spoilt, n.undone, n.ownTo = false, false, 0
	w.done()
}

// takeOver is what a start does with a snapshot that the log begins after.
func (s *state) takeOver(n *member) {
	k := s.snapshot
	n.journal, n.syncedQueue, n.applied, n.syncedMark, n.whole = k.queue, k.queue, k.at, k.at, k.whole
	s.snapshot = snapshot{}
}

// installs reports whether the journal of a member is about to be replaced.
func (s *state) installs(m int) bool { return s.snapshot.restored && int(s.snapshot.to) == m }
