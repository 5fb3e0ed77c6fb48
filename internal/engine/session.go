package engine

import "slices"

// A Waiter hears the end of a wait: Reserve returned Waiting, and now a job has
// come (Reserved), or none in time (TimedOut, DeadlineSoon). It is called from
// within another call of the engine and must not call the engine; job.Body is
// valid only until it returns.
type Waiter interface {
	WaitOver(job Job, outcome Outcome)
}

// A Session is what the engine knows of a client: which tube it uses, which it
// watches, what it has reserved.
//
// I5. A session waits in the lists of all tubes that it watches, or of none.
type Session struct {
	num     uint32 // place in Engine.sessions; jobs refer to it
	waiter  Waiter
	use     *tube
	watches []*watch      // in the order of list-tubes-watched
	places  map[*tube]int // place of a tube in watches; only with more than manyWatches

	reserved     jobHeap // by (due, id)
	reservations uint32  // so far

	waiting   bool
	waitUntil int64 // ns; Never without a timeout
	timer     timer

	producer   bool // has put
	worker     bool // has reserved
	halfClosed bool // will send nothing more: does not wait
}

// manyWatches is the number of watched tubes above which they are found by map.
const manyWatches = 16

// deadlineMargin is how long before the end of a TTR its holder is told so in
// place of waiting: one second, as in beanstalkd.
const deadlineMargin = second

// next returns when the session has to be looked at.
func (s *Session) next() int64 {
	due := s.reserved.due()
	if !s.waiting {
		return due
	}
	if due != Never {
		due -= deadlineMargin
	}
	return min(due, s.waitUntil)
}

// deadlineSoon tells whether a TTR that the session holds ends within the margin.
func (s *Session) deadlineSoon(now int64) bool {
	due := s.reserved.due()
	return due != Never && due-deadlineMargin <= now
}

// Open adds a session, which uses and watches the default tube. The waiter may
// be nil if the session never waits.
func (e *Engine) Open(w Waiter) *Session {
	s := &Session{waiter: w, use: e.deflt}
	s.timer = e.newTimer(nil, s)
	s.num = number(&e.sessions, &e.sessionNums, s)
	e.stats.Sessions++
	e.stats.TotalSessions++
	e.deflt.using++
	e.watch(s, e.deflt)
	return s
}

// Close removes a session. What it has reserved becomes ready, the oldest
// reservation first, and may go to a waiting session at once.
func (e *Engine) Close(now int64, s *Session) {
	e.stopWaiting(s)
	e.disarm(&s.timer)
	for _, i := range s.heldInOrder(&e.jobs) {
		e.giveUp(now, i)
	}
	for _, w := range s.watches {
		w.tube.watching--
		e.release(w.tube)
	}
	s.watches = nil
	s.use.using--
	e.release(s.use)
	e.stats.Sessions--
	if s.producer {
		e.stats.Producers--
	}
	if s.worker {
		e.stats.Workers--
	}
	e.sessions[s.num] = nil
	e.sessionNums = append(e.sessionNums, s.num)
}

// heldInOrder returns the jobs that the session holds, the oldest reservation first.
func (s *Session) heldInOrder(jobs *jobSlab) []slot {
	held := make([]slot, 0, s.reserved.n)
	for _, page := range s.reserved.pages {
		for _, x := range page {
			held = append(held, x.slot)
		}
	}
	slices.SortFunc(held, func(a, b slot) int {
		return int(int32(jobs.at(a).order - jobs.at(b).order)) // the count may wrap
	})
	return held
}

// HalfClose notes that the client will send nothing more. A waiting reserve
// ends with TimedOut, and none will wait from now on.
func (e *Engine) HalfClose(s *Session) {
	s.halfClosed = true
	if s.waiting {
		e.endWait(s, Job{}, TimedOut)
	}
}

// Use makes the tube the one that the session puts into, kicks and peeks.
func (e *Engine) Use(s *Session, name []byte) {
	t := e.tubeOf(name)
	old := s.use
	t.using++
	old.using--
	s.use = t
	e.release(old)
}

// Using returns the name of the tube in use.
func (s *Session) Using() string { return s.use.name }

// Watch adds a tube to those that the session reserves from and returns how
// many they are.
func (e *Engine) Watch(s *Session, name []byte) int {
	if t := e.tubeOf(name); s.place(t) < 0 {
		e.watch(s, t)
	}
	return len(s.watches)
}

func (e *Engine) watch(s *Session, t *tube) {
	t.watching++
	s.watches = append(s.watches, &watch{tube: t, sess: s})
	switch {
	case s.places != nil:
		s.places[t] = len(s.watches) - 1
	case len(s.watches) > manyWatches:
		s.places = make(map[*tube]int)
		for i, w := range s.watches {
			s.places[w.tube] = i
		}
	}
}

// Ignore takes a tube from those that the session watches and returns how many
// are left; ok is false, and nothing done, if it is the only one.
func (e *Engine) Ignore(s *Session, name []byte) (n int, ok bool) {
	t := e.byName[string(name)]
	i := -1
	if t != nil {
		i = s.place(t)
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
	if s.places != nil {
		delete(s.places, t)
		if i < last {
			s.places[s.watches[i].tube] = i
		}
	}
	t.watching--
	e.release(t)
	return last, true
}

// place returns the place of a tube in the watch list, or -1.
func (s *Session) place(t *tube) int {
	if s.places != nil {
		if i, ok := s.places[t]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(s.watches, func(w *watch) bool { return w.tube == t })
}

// Watched yields the names of the watched tubes in the order of
// list-tubes-watched: as they were added, save that the last takes the place
// of one that is ignored.
func (s *Session) Watched(yield func(name string) bool) {
	for _, w := range s.watches {
		if !yield(w.tube.name) {
			return
		}
	}
}
