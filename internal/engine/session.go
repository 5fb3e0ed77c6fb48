package engine

import "slices"

// A Waiter is told the end of a wait. Reserve returned Waiting, and now there is a
// job (OK), or none came in time (TimedOut, DeadlineSoon). WaitOver is called from
// within another call of the engine and must not call the engine; job.Body is
// valid only until it returns.
type Waiter interface {
	WaitOver(job Job, outcome Outcome)
}

// A Session is what the engine knows of a client: which tube it uses, which it
// watches, what it has reserved.
//
// I5. A session waits in the lists of all tubes that it watches, or of none. One
// with an index is in no such list: see watchState.
//
// I15. A closed session that is not free yet is in Engine.sessions, and its timer
// is set, so that Tick continues. Nothing else refers to it except the jobs that it
// still holds.
type Session struct {
	id      uint64 // no other session has it, before or after; from 1
	num     uint32 // place in Engine.sessions; jobs refer to it
	waiter  Waiter
	use     *tube       // the used tube
	watches []*watch    // in the order of list-tubes-watched
	index   *watchIndex // of watches; nil until there are more than Engine.indexAbove

	reserved jobHeap  // by (due, id)
	held     heldList // the same, in the order of reservation

	waitBegan  int64  // ns; while waiting or searching
	waitUntil  int64  // ns; the same: Never without a timeout
	waitNumber uint64 // while waiting: how many waits had begun before, in the whole engine
	resumeAt   int64  // ns; while searching or closed: when Tick goes on with that
	timer      timer

	waiting    bool
	searching  bool // looks for a job in so many tubes that it takes several turns
	producer   bool // has put
	worker     bool // has reserved
	halfClosed bool // will send nothing more: does not wait
	closed     bool // is gone, except for what continueClose has still to free
}

// A watchIndex finds the tubes of a session that watches many.
type watchIndex struct {
	positions map[*tube]int // place of a tube in Session.watches
	names     nameList      // of Session.watches

	pending    watchList // tubes to look at: they are new, or have notified
	candidates watchHeap // tubes that had a ready job when they were looked at, the best first
	looks      int       // how often this search has looked at a tube
}

// maxUnindexed is the number of watched tubes up to which it is quicker to look at
// each than to keep an index.
const maxUnindexed = 64

// deadlineMargin is the time before the end of a TTR in which a reserve returns
// DeadlineSoon instead of waiting: one second, as in beanstalkd.
const deadlineMargin = second

// next returns when Tick has to look at the session.
func (s *Session) next() int64 {
	if s.closed {
		return s.resumeAt // no TTR runs out any more
	}
	due := s.reserved.due()
	switch {
	case s.searching:
		return min(due, s.resumeAt)
	case !s.waiting:
		return due
	case due != Never:
		due -= deadlineMargin
	}
	return min(due, s.waitUntil)
}

// deadlineSoon reports whether the TTR of a job that the session holds ends within the
// margin.
func (s *Session) deadlineSoon(now int64) bool {
	due := s.reserved.due()
	return due != Never && due-deadlineMargin <= now
}

// Open adds a session, which uses and watches the default tube. The waiter may
// be nil if no Reserve ever returns Waiting: it has a timeout of 0, and the
// session watches few tubes.
func (e *Engine) Open(w Waiter) *Session {
	s := &Session{waiter: w, use: e.defaultTube, held: heldList{none, none}}
	s.timer = e.newTimer(nil, s)
	s.num = assignNumber(&e.sessions, &e.sessionNums, s)
	e.stats.Sessions++
	e.stats.TotalSessions++
	s.id = e.stats.TotalSessions
	e.defaultTube.using++
	e.watch(s, e.defaultTube)
	return s
}

// HalfClose notes that the client will send nothing more. A waiting reserve ends
// with TimedOut. Later ones do not wait, except while they search very many tubes.
func (e *Engine) HalfClose(s *Session) {
	s.halfClosed = true
	if s.waiting {
		e.endWait(s, Job{}, TimedOut)
	}
}

// Use makes a tube the one that the session puts into, kicks and peeks. The outcome
// is OutOfMemory if there would be too many tubes.
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

// Watch adds a tube to those that the session reserves from and returns their
// number. The outcome is OutOfMemory if the session, or the engine, would have too
// many.
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
	w := &watch{tube: t, sess: s, pos: -1}
	s.watches = append(s.watches, w)
	switch {
	case s.index != nil:
		s.index.add(w)
	case len(s.watches) > e.indexAbove:
		s.index = &watchIndex{positions: make(map[*tube]int)}
		for _, w := range s.watches {
			s.index.add(w)
		}
	}
}

// add adds a watch that is the last one of the session.
func (x *watchIndex) add(w *watch) {
	x.positions[w.tube] = x.names.Len()
	x.names.push(w.tube.name)
	x.addPending(w)
}

// Ignore removes a tube from those that the session watches and returns the number
// of those left. If it is the only one, ok is false and nothing is done.
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
	w := s.watches[i]
	s.watches[i] = s.watches[last]
	s.watches[last] = nil
	s.watches = s.watches[:last]
	if s.index != nil {
		s.index.remove(w)
		s.index.names.remove(i)
		delete(s.index.positions, t)
		if i < last {
			s.index.positions[s.watches[i].tube] = i
		}
	}
	t.watching--
	e.removeIfUnused(t)
	return last, true
}

// indexOf returns the place of a tube in the watch list, or -1.
func (s *Session) indexOf(t *tube) int {
	if s.index != nil {
		if i, ok := s.index.positions[t]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(s.watches, func(w *watch) bool { return w.tube == t })
}

// Watches reports whether a session watches the tube with this name.
func (e *Engine) Watches(s *Session, tube string) bool {
	t := e.byName[tube]
	return t != nil && s.indexOf(t) >= 0
}

// WatchedNames returns the names of the watched tubes in the order of
// list-tubes-watched: as they were added, except that the last one takes the place
// of one that is ignored.
func (s *Session) WatchedNames() Names {
	if s.index != nil {
		return s.index.names.snapshot()
	}
	page := namePage{names: make([]string, len(s.watches))}
	bytes := 0
	for i, w := range s.watches {
		page.names[i] = w.tube.name
		bytes += len(w.tube.name)
	}
	return Names{[]namePage{page}, len(s.watches), bytes}
}
