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
// I5. A session waits in the lists of all tubes that it watches, or of none. One
// with an index is in no such list: see place.
//
// I15. A closed session that has something left is among Engine.sessions, and
// its timer is set for what Tick is to do about that. Nothing else refers to it
// but the jobs that it still holds.
type Session struct {
	id      uint64 // no other session has it, before or after; from 1
	num     uint32 // place in Engine.sessions; jobs refer to it
	waiter  Waiter
	use     *tube
	watches []*watch    // in the order of list-tubes-watched
	index   *watchIndex // of watches; nil until there are more than Engine.few

	reserved jobHeap  // by (due, id)
	held     heldList // the same, in the order of reservation

	waitBegan int64  // ns; while waiting or searching
	waitUntil int64  // ns; the same: Never without a timeout
	waitNum   uint64 // while waiting: how many waits had begun before, in the whole engine
	goesOn    int64  // ns; while searching or closed: when Tick goes on with that
	timer     timer

	waiting    bool
	searching  bool // looks for a job in so many tubes that it takes several turns
	producer   bool // has put
	worker     bool // has reserved
	halfClosed bool // will send nothing more: does not wait
	closed     bool // is gone, but for what letGo has still to free
}

// A watchIndex is what a session has that watches many tubes.
type watchIndex struct {
	places map[*tube]int // place of a tube in Session.watches
	names  nameList      // of Session.watches

	news  watchList // tubes that are to be looked at: they are new, or have told
	found watchHeap // tubes that had a ready job when they were looked at, the best first
	looks int       // how often this search has looked at a tube
}

// manyWatches is the number of watched tubes above which they have an index. Up
// to there it is quicker to look at each.
const manyWatches = 64

// deadlineMargin is how long before the end of a TTR its holder is told so in
// place of waiting: one second, as in beanstalkd.
const deadlineMargin = second

// next returns when the session has to be looked at.
func (s *Session) next() int64 {
	if s.closed {
		return s.goesOn // no TTR runs out any more
	}
	due := s.reserved.due()
	switch {
	case s.searching:
		return min(due, s.goesOn)
	case !s.waiting:
		return due
	case due != Never:
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
// be nil if no Reserve ever returns Waiting: it has a timeout of 0, and the
// session watches few tubes.
func (e *Engine) Open(w Waiter) *Session {
	s := &Session{waiter: w, use: e.deflt, held: heldList{none, none}}
	s.timer = e.newTimer(nil, s)
	s.num = number(&e.sessions, &e.sessionNums, s)
	e.stats.Sessions++
	e.stats.TotalSessions++
	s.id = e.stats.TotalSessions
	e.deflt.using++
	e.watch(s, e.deflt)
	return s
}

// HalfClose notes that the client will send nothing more. A waiting reserve
// ends with TimedOut, and none will wait from now on, but for the end of a search
// in very many tubes.
func (e *Engine) HalfClose(s *Session) {
	s.halfClosed = true
	if s.waiting {
		e.endWait(s, Job{}, TimedOut)
	}
}

// Use makes the tube the one that the session puts into, kicks and peeks. With
// OutOfMemory there would be too many tubes.
func (e *Engine) Use(s *Session, name []byte) Outcome {
	if !e.hasRoomForTube(name) {
		return OutOfMemory
	}
	t := e.tubeOf(name)
	old := s.use
	t.using++
	old.using--
	s.use = t
	e.release(old)
	return OK
}

// Using returns the name of the tube in use.
func (s *Session) Using() string { return s.use.name }

// Watch adds a tube to those that the session reserves from and returns how
// many they are. With OutOfMemory there would be too many, of the session or in
// all.
func (e *Engine) Watch(s *Session, name []byte) (n int, outcome Outcome) {
	n = len(s.watches)
	t := e.byName[string(name)]
	if t != nil && s.place(t) >= 0 {
		return n, OK
	}
	if most := e.limits.Watches; most > 0 && n >= most {
		e.refused.Watches++
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
	case len(s.watches) > e.few:
		s.index = &watchIndex{places: make(map[*tube]int)}
		for _, w := range s.watches {
			s.index.add(w)
		}
	}
}

// add notes a tube that was added at the end of the watches.
func (x *watchIndex) add(w *watch) {
	x.places[w.tube] = x.names.Len()
	x.names.push(w.tube.name)
	x.hear(w)
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
	w := s.watches[i]
	s.watches[i] = s.watches[last]
	s.watches[last] = nil
	s.watches = s.watches[:last]
	if s.index != nil {
		s.index.forget(w)
		s.index.names.remove(i)
		delete(s.index.places, t)
		if i < last {
			s.index.places[s.watches[i].tube] = i
		}
	}
	t.watching--
	e.release(t)
	return last, true
}

// place returns the place of a tube in the watch list, or -1.
func (s *Session) place(t *tube) int {
	if s.index != nil {
		if i, ok := s.index.places[t]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(s.watches, func(w *watch) bool { return w.tube == t })
}

// Watches reports whether a session watches the tube with this name.
func (e *Engine) Watches(s *Session, tube string) bool {
	t := e.byName[tube]
	return t != nil && s.place(t) >= 0
}

// WatchedNames returns the names of the watched tubes in the order of
// list-tubes-watched: as they were added, save that the last takes the place
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
