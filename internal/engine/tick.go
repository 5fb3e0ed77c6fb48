package engine

// Tick begins a turn. It does what has come due by now, in the order of time:
// delayed jobs and jobs whose TTR ran out become ready, pauses end, waits time
// out, and what was too long for one turn goes on. At the same moment tubes go
// before sessions, and among equals the older first. It leaves the commands half
// of the work that a turn should bear; if that is not enough the rest stays due,
// and Next says so.
func (e *Engine) Tick(now int64) {
	e.work, e.now = 0, now
	for !e.halfSpent() && len(e.timers) > 0 && e.timers[0].at <= now {
		e.work++
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
}

// Next returns when Tick has to be called next, or Never. It may be too early.
func (e *Engine) Next() int64 {
	if len(e.timers) == 0 {
		return Never
	}
	return e.timers[0].at
}

// tickTube does the first thing that is due in a tube, if any is.
func (e *Engine) tickTube(now int64, t *tube) {
	switch {
	case t.delayed.due() <= now:
		i := t.delayed.top()
		j := e.jobs.at(i)
		e.detach(i, j)
		e.makeReady(now, i, j)
	case t.paused && t.unpauseAt <= now:
		e.unpause(now, t)
		if e.tubes[t.num] != t {
			return // nothing but the pause had kept it
		}
	}
	e.rearm(&t.timer, t.next())
}

// tickSession does the first thing that is due in a session, if any is. The
// warning goes before the loss of the job: a worker that waits is never given
// its own job back in the moment it is told of its deadline.
func (e *Engine) tickSession(now int64, s *Session) {
	switch {
	case s.closed:
		e.letGo(now, s)
		return
	case s.waiting && s.deadlineSoon(now):
		e.endWait(s, Job{}, DeadlineSoon)
	case s.waiting && s.waitUntil <= now:
		e.endWait(s, Job{}, TimedOut)
	case s.reserved.due() <= now:
		i := s.reserved.top()
		j := e.jobs.at(i)
		j.timeouts++
		j.unlogged = true
		e.stats.Timeouts++
		e.giveUp(now, i)
	case s.searching && s.goesOn <= now:
		e.goOnSearching(now, s)
	}
	e.rearm(&s.timer, s.next())
}
