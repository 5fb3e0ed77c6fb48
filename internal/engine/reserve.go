package engine

// Reserve takes the job with the smallest (pri, id) of all tubes that the
// session watches, paused ones apart. If there is none it waits up to timeout
// seconds, or for ever with Forever, and returns Waiting; a timeout of 0 is
// answered at once, since Tick has run before in the same turn.
//
// If a job that the session holds has a second or less of its TTR left, Reserve
// does not wait but returns DeadlineSoon; a wait ends with it too. Reserve looks for
// a job before that if a watched tube has a ready one, be the tube paused or not.
//
// A session that watches very many tubes may have to look at more of them than a
// turn should bear. Then Waiting is returned whatever the timeout, Tick goes on
// with the search, and the Waiter hears how it ended.
func (e *Engine) Reserve(now int64, s *Session, timeout int64) (Job, Outcome) {
	e.becomeWorker(s)
	s.waitBegan, s.waitUntil = now, Never
	if timeout != Forever {
		s.waitUntil = now + timeout*second
	}
	if s.index == nil {
		return e.settle(now, s, e.best(s))
	}
	s.index.looks = 0
	t, done := e.search(s)
	if !done {
		s.searching, s.goesOn = true, now
		e.arm(&s.timer, now)
		return Job{}, Waiting
	}
	return e.settle(now, s, t)
}

// goOnSearching goes on with a search that was too long for one turn.
func (e *Engine) goOnSearching(now int64, s *Session) {
	t, done := e.search(s)
	if !done {
		s.goesOn = now
		return
	}
	s.searching = false
	if job, o := e.settle(now, s, t); o != Waiting {
		s.waiter.WaitOver(job, o)
	}
}

// settle ends a search, which has found a tube or none.
func (e *Engine) settle(now int64, s *Session, t *tube) (Job, Outcome) {
	switch {
	case t != nil:
		return e.take(now, s, t.ready.top()), OK
	case s.deadlineSoon(now):
		return Job{}, DeadlineSoon
	case s.waitUntil <= now, s.halfClosed:
		return Job{}, TimedOut
	}
	e.wait(s)
	return Job{}, Waiting
}

// best returns the tube whose first ready job has the smallest (pri, id), of
// those that a session watches who watches few.
func (e *Engine) best(s *Session) *tube {
	e.work += len(s.watches) / looksPerUnit
	var best *tube
	for _, w := range s.watches {
		if t := w.tube; t.offers() && (best == nil || t.ready.at(0).before(*best.ready.at(0))) {
			best = t
		}
	}
	return best
}

// ReserveJob takes a job by id, whatever its tube, unless it is reserved. A
// buried or delayed one will be ready when the session lets it go, however that
// happens, so that this is a Change.
func (e *Engine) ReserveJob(now int64, s *Session, id uint64) (Job, Outcome) {
	i, j := e.lookup(id)
	if i == none || j.state == Reserved {
		return Job{}, NotFound
	}
	wasReady := j.state == Ready
	if !wasReady {
		if o := e.admit(JobState, e.tubeOfJob(j), j.bodyLen); o != OK {
			return Job{}, o
		}
	}
	e.becomeWorker(s)
	job := e.take(now, s, i)
	if !wasReady {
		e.emit(JobState, j)
	}
	return job, OK
}

func (e *Engine) becomeWorker(s *Session) {
	if !s.worker {
		s.worker = true
		e.stats.Workers++
	}
}

// take gives a job that is not reserved to a session.
func (e *Engine) take(now int64, s *Session, i slot) Job {
	j := e.jobs.at(i)
	if j.state == Ready {
		e.endQueue(now, j)
	}
	e.detach(i, j)
	j.state = Reserved
	j.holder = s.num
	j.reserves++
	j.unlogged = true
	j.when = now
	e.attach(i, j)
	e.work += int(j.bodyLen) / bytesPerUnit // which the caller copies
	return Job{j.id, e.body(j)}
}

// match hands a job of a tube that has become ready to a session that waits for
// it, if the tube is not paused.
func (e *Engine) match(now int64, t *tube) {
	if !t.paused && (t.waiters.first != nil || len(t.queue) > 0) {
		e.serve(now, t)
	}
}

// serve hands the first ready job of a tube to the session that has waited for
// it longest. It reports whether there were both.
func (e *Engine) serve(now int64, t *tube) (ok bool) {
	if t.ready.n == 0 {
		return false
	}
	s := e.firstWaiter(t)
	if s == nil {
		return false
	}
	e.endWait(s, e.take(now, s, t.ready.top()), OK)
	return true
}

// wait lets a session wait on all the tubes that it watches.
func (e *Engine) wait(s *Session) {
	s.waiting = true
	e.waits++
	s.waitNum = e.waits
	if s.index == nil {
		for _, w := range s.watches {
			w.tube.waiters.push(w)
			w.tube.waiting++
		}
		e.work += len(s.watches) / looksPerUnit
	}
	e.stats.Waiting++
	e.arm(&s.timer, s.next())
}

// endWait tells a waiting session how its wait ended.
func (e *Engine) endWait(s *Session, job Job, outcome Outcome) {
	e.stopWaiting(s)
	s.waiter.WaitOver(job, outcome)
}

func (e *Engine) stopWaiting(s *Session) {
	if !s.waiting {
		return
	}
	s.waiting = false
	if s.index == nil {
		for _, w := range s.watches {
			w.tube.waiters.remove(w)
			w.tube.waiting--
		}
		e.work += len(s.watches) / looksPerUnit
	}
	e.stats.Waiting--
}
