package engine

// Close closes a session. Its reserved jobs become ready, the oldest reservation first,
// and waiting sessions can get them at once. If there are too many for one turn, Tick
// continues in later turns. The session no longer counts. It must not be used except for
// another Close.
func (e *Engine) Close(now int64, s *Session) {
	if s.closed {
		return
	}
	e.cancelWait(s)
	e.disarm(&s.timer)
	e.stats.Sessions--
	if s.producer {
		e.stats.Producers--
	}
	if s.worker {
		e.stats.Workers--
	}
	s.closed = true
	e.continueClose(now, s)
}

// continueClose executes a slice of closing a session; Tick executes the rest. At the
// end, it frees the session's number.
func (e *Engine) continueClose(now int64, s *Session) {
	for n := 0; !e.enough(n); n++ {
		if !e.closeStep(now, s) {
			s.reserved.free()
			e.disarm(&s.timer)
			e.sessions[s.num] = nil
			e.sessionNums = append(e.sessionNums, s.num)
			return
		}
	}
	s.resumeAt = now
	e.rearm(&s.timer, now)
}

// closeStep releases one watch, the used tube or one job of a closed session, and reports
// whether anything was left. It releases tubes first: there are usually few, so
// stats-tube is correct at once.
func (e *Engine) closeStep(now int64, s *Session) (ok bool) {
	e.turnWork++
	switch {
	case len(s.watches) > 0:
		w := s.watches[0]
		t := w.tube
		s.watches = s.watches[1:]
		t.watching--
		e.removeIfUnused(t)
	case s.use != nil:
		t := s.use
		s.use = nil
		t.using--
		e.removeIfUnused(t)
	case s.held.first != none:
		e.releaseLost(now, s.held.first, Lost)
	default:
		return false
	}
	return true
}

// DropSessions removes all sessions at once. It emits no Change, gives no job to a
// session and calls no Waiter. Reserved jobs become ready. A cluster member uses it when
// it is no longer the leader: afterwards, the engine equals an engine restored from its
// Changes. It takes one step per session, watch, reserved job and tube.
func (e *Engine) DropSessions(now int64) {
	for _, s := range e.sessions {
		if s != nil {
			e.dropTubes(s)
		}
	}
	for _, s := range e.sessions {
		if s == nil {
			continue
		}
		for s.held.first != none {
			e.requeue(now, s.held.first)
		}
		s.reserved.free()
		e.disarm(&s.timer)
	}
	e.sessions, e.sessionNums, e.claiming = nil, nil, e.opt.Claims
	e.stats.Sessions, e.stats.Producers, e.stats.Workers = 0, 0, 0
	for _, t := range e.tubes {
		if t != nil {
			t.keptByPause = t.paused
			e.removeIfUnused(t)
		}
	}
}

// dropTubes ends the wait of a session and removes its references to tubes.
func (e *Engine) dropTubes(s *Session) {
	e.cancelWait(s)
	for _, w := range s.watches {
		w.tube.watching--
	}
	if s.use != nil { // otherwise it was about to be closed
		s.use.using--
	}
	s.watches, s.use = nil, nil
}
