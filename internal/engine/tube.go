package engine

// maxTubeName is the maximum length of a tube's name, in bytes.
const maxTubeName = 200

// DefaultTube is the tube that every session uses and watches initially. It always
// exists.
const DefaultTube = "default"

// A tube is a named queue. It exists while something refers to it: a session that uses or
// watches it, a job in any state, or a restored pause. When the last reference is gone,
// the tube is removed with its counters.
//
// I3. A tube that is not shut has no ready job or no waiting session. I4. using and
// watching count the sessions that use and watch the tube. reserved counts its jobs that
// sessions hold, urgent its ready jobs below UrgentPri, and bytes the bodies of its jobs.
//
// I9. Engine.tubes, names and byName contain exactly the tubes that something refers to.
type tube struct {
	name      string
	num       uint32 // index in Engine.tubes; jobs refer to it
	nameIndex int    // place in Engine.names

	ready   queue // by (pri, id)
	delayed queue // by (due, id)
	buried  queue // by (due, id): due is the rank in the order of burying

	reserved int
	urgent   int
	using    int
	watching int
	bytes    int64

	limits    TubeLimits
	limitsAge int // Engine.limitsAge when limits was set

	policy *Policy // nil if there is none
	gate   *gate   // nil if neither the policy nor an earlier one needs it
	keyed  bool    // whether the policy has a Key

	waiters     watchList // sessions that wait for a job of this tube, first come first
	waiting     int       // number of waiters
	pauseLen    uint32    // requested length in seconds, while paused
	unpauseAt   int64     // end of the pause in ns
	paused      bool
	shut        bool // no job is offered: the tube is paused, or its gate is shut
	resuming    bool // the pause has ended, but not all waiting sessions have been served
	keptByPause bool // a restored pause keeps the tube
	counts      TubeCounts
	times       *Times // nil unless the tube is measured; see MeasureTube
	timer       timer
}

// jobs returns the number of the tube's jobs in all states.
func (t *tube) jobs() int { return t.ready.n + t.delayed.n + t.buried.n + t.reserved }

// next returns the time at which Tick must examine the tube.
func (t *tube) next() int64 {
	due := t.delayed.due()
	if t.shut {
		due = t.opens(due)
	}
	return due
}

// opens returns the time at which Tick must check whether the tube is still shut, or due
// if that is earlier.
func (t *tube) opens(due int64) int64 {
	if t.paused {
		due = min(due, t.unpauseAt)
	}
	if t.gate != nil {
		due = min(due, t.gate.opensAt)
	}
	return due
}

// offers reports whether a reserve from the tube would return a job.
func (t *tube) offers() bool { return !t.shut && t.ready.n > 0 }

// A watch links a session to a tube that it watches. It is also the session's element in
// the tube's waiting list.
type watch struct {
	tube       *tube
	sess       *Session
	prev, next *watch // neighbors in the list; nil while the session does not wait
}

// A watchList is a first-in first-out list from which any element can be removed.
type watchList struct{ first, last *watch }

func (l *watchList) push(w *watch) {
	w.prev, w.next = l.last, nil
	if l.last != nil {
		l.last.next = w
	} else {
		l.first = w
	}
	l.last = w
}

func (l *watchList) remove(w *watch) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.last = w.prev
	}
	w.prev, w.next = nil, nil
}

// tubeNamed returns the named tube, and creates it if necessary.
func (e *Engine) tubeNamed(name string) *tube {
	if t := e.byName[name]; t != nil {
		return t
	}
	e.turnWork += tubeWork
	q := queue{jobs: &e.jobs}
	t := &tube{name: name, nameIndex: e.names.Len(), ready: q, delayed: q, buried: q}
	t.timer = e.newTimer(t, nil)
	if p := e.PolicyOf(name); p != nil {
		e.setPolicy(t, p)
	}
	t.num = assignNumber(&e.tubes, &e.tubeNums, t)
	e.names.push(name)
	e.byName[name] = t
	return t
}

// tubeOf is tubeNamed for a byte slice. It allocates a string only for a new tube.
func (e *Engine) tubeOf(name []byte) *tube {
	if t := e.byName[string(name)]; t != nil {
		return t
	}
	return e.tubeNamed(string(name))
}

// removeIfUnused removes the tube if nothing refers to it. This ends the tube's pause,
// which must be logged so that a restart does not restore it. As in beanstalkd, the last
// tube in the list takes the place of the removed tube.
func (e *Engine) removeIfUnused(t *tube) {
	if t.using+t.watching+t.jobs() > 0 || t.keptByPause || t == e.defaultTube {
		return
	}
	if t.paused {
		e.emit(Change{Kind: TubeGone, Tube: t.name})
	}
	for _, q := range []*queue{&t.ready, &t.delayed, &t.buried} {
		q.free()
	}
	e.disarm(&t.timer)
	e.countStales(t.policy, nil)
	if e.names.shared { // remove copies the names
		e.turnWork += e.names.Len() / namesPerUnit
	}
	e.byName[e.names.remove(t.nameIndex)].nameIndex = t.nameIndex
	e.tubes[t.num] = nil
	e.tubeNums = append(e.tubeNums, t.num)
	delete(e.byName, t.name)
}
