package engine

import "math"

// Reserve reserves the job with the smallest (pri, id) in all watched tubes that are not
// paused. If there is none, it returns Waiting and waits up to timeout seconds, or
// without limit if timeout is Forever. If timeout is 0, it never waits.
//
// If there is no job, and the TTR of a job that the session holds expires within a
// second, Reserve returns DeadlineSoon. A wait also ends with DeadlineSoon.
//
// Reserve examines each watched tube. 10,000 tubes take some tens of microseconds.
func (e *Engine) Reserve(now int64, s *Session, timeout int64) (Job, Outcome) {
	e.becomeWorker(s)
	s.waitBegan, s.waitUntil = now, Never
	if timeout != Forever {
		s.waitUntil = now + timeout*second
	}
	switch i := e.choose(now, s, math.MaxInt); {
	case i != none:
		return e.reserve(now, s, i), OK
	case s.deadlineSoon(now):
		return Job{}, DeadlineSoon
	case s.waitUntil <= now, s.halfClosed:
		return Job{}, TimedOut
	}
	e.beginWait(s)
	return Job{}, Waiting
}

// maxBatch is the maximum total size of the bodies in a batch, in bytes. A batch always
// contains at least one job of any size.
const maxBatch = 1 << 20

// ReserveBatch reserves up to n jobs and appends them to batch. It waits only for the
// first job. It reserves further ready jobs up to a total of maxBatch bytes, and within
// the work of a turn.
func (e *Engine) ReserveBatch(now int64, s *Session, timeout int64, n int, batch []Job) ([]Job, Outcome) {
	job, o := e.Reserve(now, s, timeout)
	if o != OK {
		return batch, o
	}
	batch = append(batch, job)
	for size := len(job.Body); len(batch) < n && (len(batch) < minSlice || !e.Spent()); {
		i := e.choose(now, s, maxBatch-size)
		if i == none {
			break
		}
		job = e.reserve(now, s, i)
		size += len(job.Body)
		batch = append(batch, job)
	}
	return batch, OK
}

// choose returns the job that a session reserves next. It returns none if there is no
// job, or if the job's body has more than most bytes. If the first job is stale, choose
// ends the stale jobs at the heads of all watched tubes and searches again.
func (e *Engine) choose(now int64, s *Session, most int) slot {
	for n := 0; ; {
		i := e.best(s)
		if i == none || e.claiming || int(e.jobs.at(i).bodyLen) > most {
			return none
		}
		j := e.jobs.at(i)
		if t := e.tubeOfJob(j); e.reservable(now, t, i, j, n) {
			if e.admitAttempt(t, j) {
				return i
			}
			continue
		}
		for _, w := range s.watches {
			for t := w.tube; t.offers(); n++ {
				if i := t.ready.top(); e.reservable(now, t, i, e.jobs.at(i), n) {
					break
				}
			}
		}
	}
}

// best returns the ready job with the smallest (pri, id) in all tubes that a session
// watches, or none.
func (e *Engine) best(s *Session) slot {
	e.turnWork += len(s.watches) / stepsPerUnit
	best, least := none, key{}
	for _, w := range s.watches {
		if t := w.tube; t.offers() {
			i := t.ready.top()
			if k := e.jobs.keyAt(i); best == none || k.Before(least) {
				best, least = i, k
			}
		}
	}
	return best
}

// ReserveJob reserves a job of any tube by id, unless it is already reserved. For a
// buried or delayed job, this is a Change: the job will be ready when the reservation
// ends. For a stale job, the outcome is NotFound.
func (e *Engine) ReserveJob(now int64, s *Session, id uint64) (Job, Outcome) {
	i, j := e.lookup(id)
	if i == none || j.state() == Reserved {
		return Job{}, NotFound
	}
	t, wasReady := e.tubeOfJob(j), j.state() == Ready
	if t.policy != nil && e.endStale(now, t, i, j) {
		return Job{}, NotFound
	}
	if !wasReady || t.policy.singleAttempt() {
		if o := e.admit(JobState, t, j.bodyLen); o != OK {
			return Job{}, o
		}
	}
	e.becomeWorker(s)
	job := e.reserve(now, s, i)
	if !wasReady && !t.policy.singleAttempt() {
		e.emitState(i, j)
	}
	return job, OK
}

func (e *Engine) becomeWorker(s *Session) {
	if !s.worker {
		s.worker = true
		e.stats.Workers++
	}
}

// reserve gives an unreserved job to a session.
func (e *Engine) reserve(now int64, s *Session, i slot) Job {
	j := e.jobs.at(i)
	t := e.tubeOfJob(j)
	c := e.jobs.cold(j)
	wasReady := j.state() == Ready
	if wasReady {
		e.endQueue(now, t, c.when)
	}
	c.Reserves++
	e.hold(s, t, i, j, c, now)
	if t.gate != nil && t.gate.counts {
		e.passGate(now, t, i, j, wasReady)
	}
	e.turnWork += int(j.bodyLen) / bytesPerUnit // the caller copies the body
	return Job{j.id, e.body(j)}
}

// hold reserves a job for a session. since is the time of the reserve.
func (e *Engine) hold(s *Session, t *tube, i slot, j *job, c *coldJob, since int64) {
	e.detach(t, i, j)
	c.holder = s.num
	c.when = since
	j.setState(Reserved)
	j.packing |= unlogged
	e.attach(t, i, j)
}

// match gives a job that has become ready to a waiting session, if there is one and the
// tube is not shut.
func (e *Engine) match(now int64, t *tube) {
	if !t.shut && t.waiters.first != nil {
		e.serve(now, t)
	}
}

// serve gives the first ready job of a tube to the session that has waited longest. It
// returns false if no job is ready or no session waits.
func (e *Engine) serve(now int64, t *tube) (ok bool) {
	for n := 0; t.ready.n > 0 && t.waiters.first != nil; n++ {
		i := t.ready.top()
		if j := e.jobs.at(i); e.reservable(now, t, i, j, n) && e.admitAttempt(t, j) {
			s := t.waiters.first.sess
			e.endWait(s, e.reserve(now, s, i), OK)
			return true
		}
		if t.gateShut() {
			return false
		}
	}
	return false
}

// beginWait makes a session wait for a job of any tube that it watches.
func (e *Engine) beginWait(s *Session) {
	s.waiting = true
	for _, w := range s.watches {
		w.tube.waiters.push(w)
		w.tube.waiting++
	}
	e.turnWork += len(s.watches) / stepsPerUnit
	e.stats.Waiting++
	e.arm(&s.timer, s.next())
}

// endWait ends the wait of a session and passes the outcome to its Waiter.
func (e *Engine) endWait(s *Session, job Job, outcome Outcome) {
	e.cancelWait(s)
	s.waiter.WaitOver(job, outcome)
}

// cancelWait ends the wait of a session, if any, without calling its Waiter.
func (e *Engine) cancelWait(s *Session) {
	if !s.waiting {
		return
	}
	s.waiting = false
	for _, w := range s.watches {
		w.tube.waiters.remove(w)
		w.tube.waiting--
	}
	e.turnWork += len(s.watches) / stepsPerUnit
	e.stats.Waiting--
}
