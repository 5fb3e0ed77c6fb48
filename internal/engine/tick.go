package engine

// tickLimit bounds how much one Tick does, so that a million jobs that come due
// in the same second do not hold up everybody else.
const tickLimit = 2000

// Tick does what has come due by now, in the order of time: delayed jobs and
// jobs whose TTR ran out become ready, pauses end, waits time out. At the same
// moment tubes go before sessions, and among equals the older first. If it is
// more than a turn should bear the rest stays due, and Next says so. After that
// it goes on with the sessions that Close could not finish.
func (e *Engine) Tick(now int64) {
	for n := 0; n < tickLimit && len(e.timers) > 0 && e.timers[0].at <= now; n++ {
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
	e.tickClosing(now)
}

// Next returns when Tick has to be called next, or Never. It may be too early.
func (e *Engine) Next() int64 {
	next := int64(Never)
	if len(e.timers) > 0 {
		next = e.timers[0].at
	}
	if len(e.closing) > 0 {
		next = min(next, e.closedAt)
	}
	return next
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
	}
	e.rearm(&s.timer, s.next())
}
