package engine

// Tick starts a turn. It processes the events that are due, in the order of time: delays
// and TTRs expire, pauses end, waits time out, and long operations continue. At the same
// time, tubes precede sessions, and older events precede newer ones. Tick uses at most an
// eighth of a turn's work. The remaining events stay due, and Next returns their time.
// RunSchedules runs the schedules.
func (e *Engine) Tick(now int64) {
	e.turnWork, e.turnLogged, e.now = 0, 0, now
	if e.outdated() {
		e.updatePolicies()
	}
	for !e.tickSpent() && len(e.timers) > 0 && e.timers[0].at <= now {
		e.turnWork++
		t := e.timers[0]
		switch next := t.next(); {
		case next > t.at: // the timer is too early: another event might be due first
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

// Next returns the time at which Tick or RunSchedules must be called next, or Never. The
// time can be too early.
func (e *Engine) Next() int64 {
	if e.outdated() {
		return e.now
	}
	due := min(e.staleSweep.due, e.nextSchedules())
	if len(e.timers) == 0 {
		return due
	}
	return min(e.timers[0].at, due)
}

// tickTube processes the first due event of a tube, if any.
func (e *Engine) tickTube(now int64, t *tube) {
	switch {
	case t.delayed.due() <= now:
		i := t.delayed.top()
		j := e.jobs.at(i)
		e.detach(t, i, j)
		j.setState(Ready)
		e.offer(now, t, i, j)
	case t.paused && t.unpauseAt <= now:
		e.unpause(now, t)
		if e.tubes[t.num] != t {
			return // only the pause kept the tube alive
		}
	case t.gate != nil && t.gate.opensAt <= now:
		if e.openGate(now, t); e.tubes[t.num] != t {
			return // its last jobs have expired
		}
	}
	e.rearm(&t.timer, t.next())
}

// tickSession processes the first due event of a session, if any. DeadlineSoon precedes
// the end of the TTR, so that a waiting worker gets a warning instead of its own job.
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
		e.jobs.held(j).Timeouts++
		e.tubeOfJob(j).counts.Timeouts++
		j.packing |= unlogged
		e.stats.Timeouts++
		e.releaseLost(now, i, Timeout)
	}
	e.rearm(&s.timer, s.next())
}
