package engine

// Tick begins a turn. It does what has come due by now, in the order of time:
// delayed jobs and jobs whose TTR ran out become ready, pauses end, waits time
// out, and operations that were too long for one turn go on. At the same moment
// tubes go before sessions, and the older goes before the newer. Tick uses an eighth of
// a turn's work at most, and leaves the rest to the commands. What it does not
// reach stays due, and Next says so.
func (e *Engine) Tick(now int64) {
	e.turnWork, e.turnLogged, e.now = 0, 0, now
	if e.outdated() {
		e.updatePolicies()
	}
	for !e.tickSpent() && len(e.timers) > 0 && e.timers[0].at <= now {
		e.turnWork++
		t := e.timers[0]
		switch next := t.next(); {
		case next > t.at: // too early: something else may be due before
			e.rearm(t, next)
		case t.tube != nil:
			e.tickTube(now, t.tube)
		default:
			e.tickSession(now, t.sess)
		}
	}
	if e.staleSweep.due <= now {
		e.sweepStale(now)
	}
}

// Next returns when Tick has to be called next, or Never. It may be too early.
func (e *Engine) Next() int64 {
	if e.outdated() {
		return e.now
	}
	if len(e.timers) == 0 {
		return e.staleSweep.due
	}
	return min(e.timers[0].at, e.staleSweep.due)
}

// tickTube does the first thing that is due in a tube, if any is.
func (e *Engine) tickTube(now int64, t *tube) {
	switch {
	case t.delayed.due() <= now:
		i := t.delayed.top()
		j := e.jobs.at(i)
		e.detach(t, j)
		e.makeReady(now, t, i, j)
	case t.paused && t.unpauseAt <= now:
		e.unpause(now, t)
		if e.tubes[t.num] != t {
			return // only the pause had kept the tube
		}
	case t.gate != nil && t.gate.opensAt <= now:
		if e.openGate(now, t); e.tubes[t.num] != t {
			return // its last jobs were too old
		}
	}
	e.rearm(&t.timer, t.next())
}

// tickSession does the first thing that is due in a session, if any is. DeadlineSoon
// goes before the end of the TTR: a waiting worker is never given its own job back
// at the moment when it is warned of the deadline.
func (e *Engine) tickSession(now int64, s *Session) {
	switch {
	case s.closed:
		e.continueClose(now, s)
		return
	case s.waiting && s.deadlineSoon(now):
		e.endWait(s, Job{}, DeadlineSoon)
	case s.waiting && s.waitUntil <= now:
		e.endWait(s, Job{}, TimedOut)
	case s.reserved.due() <= now:
		i := s.reserved.top()
		j := e.jobs.at(i)
		e.jobs.held(j).timeouts++
		e.tubeOfJob(j).timeouts++
		j.packing |= unlogged
		e.stats.Timeouts++
		e.lose(now, i, Timeout)
	}
	e.rearm(&s.timer, s.next())
}
