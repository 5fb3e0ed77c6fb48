package engine

// Close removes a session. The jobs that it has reserved become ready, the oldest
// reservation first, and may go to a waiting session at once. If they are too many
// for one turn, Tick does the rest, and Next says so. The session counts as gone
// at once, and must not be used any more, except that Close may be called again.
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

// continueClose does a slice of closing a session; Tick does the rest. When nothing
// is left, the number of the session is free too.
func (e *Engine) continueClose(now int64, s *Session) {
	for n := 0; !e.enough(n); n++ {
		if !e.closeStep(now, s) {
			e.disarm(&s.timer)
			e.sessions[s.num] = nil
			e.sessionNums = append(e.sessionNums, s.num)
			return
		}
	}
	s.resumeAt = now
	e.rearm(&s.timer, now)
}

// closeStep frees one watch, the used tube or one job of a closed session, if
// anything is left. Tubes go first: mostly they are few, so that stats-tube is
// right at once.
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
		e.lose(now, s.held.first, Lost)
	default:
		return false
	}
	return true
}

// DropSessions forgets all sessions at once. It makes no Change, gives no job to a
// session and tells no Waiter. Reserved jobs become ready. It is for a member of a
// cluster that may not decide any more: afterwards the engine is as if it had restored
// its own Changes. It costs a step for each session, watch, reserved job and tube.
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
			e.giveUp(now, s.held.first)
		}
		e.disarm(&s.timer)
	}
	e.sessions, e.sessionNums = nil, nil
	e.stats.Sessions, e.stats.Producers, e.stats.Workers = 0, 0, 0
	for _, t := range e.tubes {
		if t != nil {
			t.keptByPause = t.paused
			e.removeIfUnused(t)
		}
	}
}

// dropTubes makes a session one that waits for nothing, and has no tubes.
func (e *Engine) dropTubes(s *Session) {
	e.cancelWait(s)
	for _, w := range s.watches {
		w.tube.watching--
	}
	if s.use != nil { // else it was about to be closed
		s.use.using--
	}
	s.watches, s.use = nil, nil
}

// giveUp makes a reserved job ready, and offers it to no session.
func (e *Engine) giveUp(now int64, i slot) {
	j := e.jobs.at(i)
	t := e.tubeOfJob(j)
	e.detach(t, j)
	e.jobs.held(j).when = now
	j.setState(Ready)
	e.attach(t, i, j)
}
