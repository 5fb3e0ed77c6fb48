package engine

// Close removes a session. The jobs that it has reserved become ready, the oldest
// reservation first, and may go to a waiting session at once. If they are too many
// for one turn, Tick does the rest, and Next says so. The session counts as gone
// at once, and must not be used any more.
func (e *Engine) Close(now int64, s *Session) {
	e.cancelWait(s)
	e.disarm(&s.timer)
	e.stats.Sessions--
	if s.producer {
		e.stats.Producers--
	}
	if s.worker {
		e.stats.Workers--
	}
	s.closed, s.searching = true, false
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
		if s.index != nil {
			s.index.remove(w)
		}
		t.watching--
		e.removeIfUnused(t)
	case s.use != nil:
		t := s.use
		s.use = nil
		t.using--
		e.removeIfUnused(t)
	case s.held.first != none:
		e.requeue(now, s.held.first)
	default:
		return false
	}
	return true
}
