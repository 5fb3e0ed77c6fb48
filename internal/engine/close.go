package engine

// Close removes a session. What it has reserved becomes ready, the oldest
// reservation first, and may go to a waiting session at once. If that is more
// than a turn should bear, Tick does the rest, and Next says so; the session
// counts as gone all the same, and must not be used any more.
func (e *Engine) Close(now int64, s *Session) {
	e.stopWaiting(s)
	e.disarm(&s.timer)
	e.stats.Sessions--
	if s.producer {
		e.stats.Producers--
	}
	if s.worker {
		e.stats.Workers--
	}
	s.closed, s.searching = true, false
	e.letGo(now, s)
}

// letGo frees what a closed session still has, as much as a turn should bear;
// Tick does the rest. When that was all, the number of the session is free too.
func (e *Engine) letGo(now int64, s *Session) {
	for n := 0; !e.enough(n); n++ {
		if !e.letGoOne(now, s) {
			e.disarm(&s.timer)
			e.sessions[s.num] = nil
			e.sessionNums = append(e.sessionNums, s.num)
			return
		}
	}
	s.goesOn = now
	e.rearm(&s.timer, now)
}

// letGoOne frees one thing that a closed session still has, if there is one.
// Tubes go first: mostly they are few, and then all that stats-tube tells of
// sessions is right at once.
func (e *Engine) letGoOne(now int64, s *Session) (ok bool) {
	e.work++
	switch {
	case len(s.watches) > 0:
		w := s.watches[0]
		t := w.tube
		s.watches = s.watches[1:]
		if s.index != nil {
			s.index.forget(w)
		}
		t.watching--
		e.release(t)
	case s.use != nil:
		t := s.use
		s.use = nil
		t.using--
		e.release(t)
	case s.held.first != none:
		e.giveUp(now, s.held.first)
	default:
		return false
	}
	return true
}
