package engine

import "slices"

// A Waiter receives the result of a Reserve that returned Waiting: a job (OK), or no job
// (TimedOut, DeadlineSoon). WaitOver is called during another call of the engine and must
// not call the engine. job.Body is valid until it returns.
type Waiter interface {
	WaitOver(job Job, outcome Outcome)
}

// A Session is the engine's state of a client: the tube in use, the watched tubes and the
// reserved jobs.
//
// I5. A session waits in the lists of all tubes that it watches, or of none.
//
// I15. A closed session that is not free yet is in Engine.sessions, and its timer is set,
// so that Tick continues. Only the jobs that it still holds refer to it.
type Session struct {
	id      uint64 // unique, from 1
	num     uint32 // index in Engine.sessions; jobs refer to it
	waiter  Waiter
	use     *tube    // the used tube
	watches []*watch // in the order of list-tubes-watched

	reserved queue    // by (due, id)
	held     heldList // the same, in the order of reservation

	waitBegan int64 // in ns; while waiting
	waitUntil int64 // in ns; while waiting. Never means no timeout
	resumeAt  int64 // in ns; while closed: time at which Tick continues the close
	timer     timer

	waiting    bool
	producer   bool // has put a job
	worker     bool // has reserved a job
	halfClosed bool // will send nothing more, so it does not wait
	closed     bool // closed, except for references that continueClose must release
}

// deadlineMargin is the remaining TTR below which a reserve returns DeadlineSoon instead
// of waiting: one second, as in beanstalkd.
const deadlineMargin = second

// next returns the time at which Tick must examine the session.
func (s *Session) next() int64 {
	if s.closed {
		return s.resumeAt // the jobs no longer have a TTR
	}
	due := s.reserved.due()
	switch {
	case !s.waiting:
		return due
	case due != Never:
		due -= deadlineMargin
	}
	return min(due, s.waitUntil)
}

// deadlineSoon reports whether the TTR of a job that the session holds expires within the
// margin.
func (s *Session) deadlineSoon(now int64) bool {
	due := s.reserved.due()
	return due != Never && due-deadlineMargin <= now
}

// Open adds a session, which uses and watches the default tube. w can be nil if each
// Reserve has a timeout of 0, so that none returns Waiting.
func (e *Engine) Open(w Waiter) *Session {
	s := &Session{waiter: w, use: e.defaultTube, reserved: queue{jobs: &e.jobs}, held: heldList{none, none}}
	s.timer = e.newTimer(nil, s)
	s.num = assignNumber(&e.sessions, &e.sessionNums, s)
	e.stats.Sessions++
	e.stats.TotalSessions++
	s.id = e.stats.TotalSessions
	e.defaultTube.using++
	e.watch(s, e.defaultTube)
	return s
}

// HalfClose records that the client will send no more commands. A waiting reserve ends
// with TimedOut, and later reserves do not wait.
func (e *Engine) HalfClose(s *Session) {
	s.halfClosed = true
	if s.waiting {
		e.endWait(s, Job{}, TimedOut)
	}
}

// Use sets the tube of later puts, kicks and peeks. The outcome is OutOfMemory if there
// would be too many tubes.
func (e *Engine) Use(s *Session, name []byte) Outcome {
	if !e.hasRoomForTube(name) {
		return OutOfMemory
	}
	t := e.tubeOf(name)
	old := s.use
	t.using++
	old.using--
	s.use = t
	e.removeIfUnused(old)
	return OK
}

// Holds reports whether the session has reserved jobs.
func (s *Session) Holds() bool { return s.reserved.n > 0 }

// Using returns the name of the used tube.
func (s *Session) Using() string { return s.use.name }

// Watch adds a tube to the watched tubes and returns their number. The outcome is
// OutOfMemory if the session or the engine would have too many.
func (e *Engine) Watch(s *Session, name []byte) (n int, outcome Outcome) {
	n = len(s.watches)
	t := e.byName[string(name)]
	if t != nil && s.indexOf(t) >= 0 {
		return n, OK
	}
	if limit := e.limits.Watches; limit > 0 && n >= limit {
		e.refuse(WatchesLimit, string(name))
		return n, OutOfMemory
	}
	if !e.hasRoomForTube(name) {
		return n, OutOfMemory
	}
	e.watch(s, e.tubeOf(name))
	return n + 1, OK
}

func (e *Engine) watch(s *Session, t *tube) {
	t.watching++
	s.watches = append(s.watches, &watch{tube: t, sess: s})
}

// Ignore removes a tube from the watched tubes and returns the number of remaining ones.
// If the tube is the only one, ok is false and nothing changes.
func (e *Engine) Ignore(s *Session, name []byte) (n int, ok bool) {
	t := e.byName[string(name)]
	i := -1
	if t != nil {
		i = s.indexOf(t)
	}
	if i < 0 {
		return len(s.watches), true
	}
	last := len(s.watches) - 1
	if last == 0 {
		return 1, false
	}
	s.watches[i] = s.watches[last]
	s.watches[last] = nil
	s.watches = s.watches[:last]
	t.watching--
	e.removeIfUnused(t)
	return last, true
}

// indexOf returns the index of a tube in the watch list, or -1.
func (s *Session) indexOf(t *tube) int {
	return slices.IndexFunc(s.watches, func(w *watch) bool { return w.tube == t })
}

// Watches reports whether a session watches the tube with this name.
func (e *Engine) Watches(s *Session, tube string) bool {
	t := e.byName[tube]
	return t != nil && s.indexOf(t) >= 0
}

// WatchedNames returns the names of the watched tubes in the order of list-tubes-watched:
// the order of addition, except that the last tube replaces one that is ignored.
func (s *Session) WatchedNames() Names {
	var l nameList
	for _, w := range s.watches {
		l.push(w.tube.name)
	}
	return l.Names
}
