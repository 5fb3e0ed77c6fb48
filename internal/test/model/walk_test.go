package model

// Catching up: a walk over a donor, beside what the donor does, and then the log.

// beginWalk lets a member begin to receive a walk: its next entry is cut at the donor.
func (w *world) beginWalk(donor, to int) {
	d, t := &w.s.members[donor], &w.s.members[to]
	if w.s.walks == 0 || w.s.walk.active || donor == to || !w.isWhole(d) || t.leads || t.last >= d.cut {
		return
	}
	w.step("a walk over %d for %d begins", donor, to)
	w.next.walks--
	w.next.walk = walk{active: true, donor: uint8(donor), to: uint8(to), from: d.applied, merged: d.applied}
	n := &w.next.members[to]
	n.decides, n.spoilt, n.epoch = 0, false, 0
	n.undone, n.ownTo, n.kept = false, 0, 0
	n.box, n.letters = [boxSize]letter{}, 0
	w.done()
}

// isWhole reports whether the engine of a donor is as the log says where the donor is, or has decided what comes after that.
func (w *world) isWhole(d *member) bool {
	inFlight := d.decides == 0 && d.applied < d.kept && w.planted != "a kept engine is walked before its journal has it"
	return !d.spoilt && !inFlight && d.applied >= d.whole
}

// visit sends the next job.
func (w *world) visit() {
	k := w.s.walk
	d := &w.s.members[k.donor]
	if !k.active || k.broken || k.place == jobs || !w.isWhole(d) {
		return
	}
	w.step("the walk visits job %d", k.place)
	if job := d.engine[k.place]; job.isThere() {
		w.next.walk.queue[k.place] = job.committed()
	}
	w.next.walk.place++
	w.done()
}

// merge applies an entry before the end of the walk.
func (w *world) merge() {
	k := w.s.walk
	if w.planted == "entries are applied during the walk" && k.active && !k.broken && k.place < jobs && k.merged < w.s.commits {
		w.step("%d applies %d during the walk", k.to, k.merged+1)
		w.next.walk.merged++
		w.next.walk.queue.apply(w.s.committed[k.merged+1].fact)
		w.done()
	}
}

// endWalk makes what was received the member's, if none of it can be lost any more.
func (w *world) endWalk() {
	k := w.s.walk
	d := &w.s.members[k.donor]
	if !k.active || k.broken || k.place < jobs || !w.isWhole(d) {
		return
	}
	until := d.applied
	switch {
	case d.decides == 0, w.planted == "a leader's walk does not wait for its commit":
	case d.epoch != d.decides || d.owns < d.execs || d.execs > 0 && d.own[d.execs-1] > d.commit:
		return
	default:
		until = d.commit
	}
	w.step("the walk for %d ends, from %d until %d", k.to, k.from, until)
	w.next.walk = walk{}
	n := &w.next.members[k.to]
	at := k.merged // more than from only by mistake
	n.engine, n.journal, n.syncedQueue = k.queue, k.queue, k.queue
	n.applied, n.syncedMark, n.last, n.synced, n.cut, n.commit = at, at, at, at, at, at
	n.whole = max(until, at)
	n.log = [logSize]entry{}
	copy(n.log[1:at+1], w.s.committed[1:at+1])
	w.done()
}

// breakWalk notes that the engine of a member is another one now.
func (s *state) breakWalk(m int) {
	if s.walk.active && int(s.walk.donor) == m {
		s.walk.broken = true
	}
}

// abandonWalk ends a walk over an engine that is not there any more. What was received was
// not the member's yet.
func (w *world) abandonWalk() {
	if k := w.s.walk; k.active && k.broken {
		w.step("the walk for %d is abandoned", k.to)
		w.next.walk = walk{}
		w.next.members[k.to].restart(w)
		w.done()
	}
}
