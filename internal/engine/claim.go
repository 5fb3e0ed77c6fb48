package engine

import "math"

// A Claim describes a reservation that an earlier leader of a cluster made. The new
// leader's engine has no reservations, and returns the job to the client that holds it.
// Times are durations, so that clocks need not agree.
type Claim struct {
	ID       uint64
	Reserves uint32 // number of the job's reservations, including this one
	For      int64  // ns since the reserve
	Left     int64  // ns until the TTR expires
	At       int64  // time of the reserve in ns on that leader's clock
}

// Claims appends up to n claims of the jobs that a session holds, the oldest reservation
// first. The durations end at the start of the turn.
func (e *Engine) Claims(s *Session, n int, claims []Claim) []Claim {
	for i := s.held.first; i != none && n > 0; n-- {
		j := e.jobs.at(i)
		c := e.jobs.held(j)
		claims = append(claims, Claim{j.id, c.Reserves, max(0, e.now-c.when), c.due - e.now, c.when})
		i = c.heldAfter
	}
	return claims
}

// Claim gives a session the job of a claim. It makes no Change, and does not count as an
// attempt or against the rate of a policy. The outcome is not OK if the job is gone
// (NotFound), if it is not ready (Failed), or if the TTR of the reservation has expired
// (TimedOut).
func (e *Engine) Claim(now int64, s *Session, claim Claim) Outcome {
	i, j := e.lookup(claim.ID)
	switch {
	case i == none:
		return NotFound
	case claim.Left <= 0:
		return TimedOut
	case j.state() == Delayed && e.jobs.when(j) <= now+claimMargin, j.state() == Ready: // the earlier leader's clock might have been ahead
	default:
		return Failed
	}
	e.becomeWorker(s)
	t, c := e.tubeOfJob(j), e.jobs.cold(j)
	c.Reserves = max(c.Reserves, claim.Reserves)
	e.hold(s, t, i, j, c, now-claim.For)
	if due := now + claim.Left; due != c.when+int64(j.ttr)*second {
		e.extend(s, i, j, due)
		e.arm(&s.timer, s.next())
	}
	if t.gate != nil && t.gate.counts {
		e.closeGate(now, t)
	}
	return OK
}

const claimMargin = second

// EndClaims ends the period for claims that Options.Claims or DropSessions started.
func (e *Engine) EndClaims() { e.claiming = false }

// ResumeWait makes a session continue a wait that it started on an earlier leader. It has
// waited for waited ns, and left is the remaining time in ns, or Never. Its Waiter gets
// the outcome, even if there is a job now.
func (e *Engine) ResumeWait(now int64, s *Session, waited, left int64) {
	e.becomeWorker(s)
	s.waitBegan, s.waitUntil = now-waited, Never
	if left != Never {
		s.waitUntil = now + left
	}
	e.beginWait(s)
	if i := e.choose(now, s, math.MaxInt); i != none {
		e.endWait(s, e.reserve(now, s, i), OK)
	}
}

// Wait returns the time that a session has waited and the time that it will still wait,
// for ResumeWait.
func (e *Engine) Wait(s *Session) (waited, left int64) {
	if left = Never; s.waitUntil != Never {
		left = s.waitUntil - e.now
	}
	return max(0, e.now-s.waitBegan), left
}

// Roles reports whether a session has put jobs, and whether it has reserved any.
func (s *Session) Roles() (producer, worker bool) { return s.producer, s.worker }

// ResumeRoles gives a session the roles that it had on an earlier leader.
func (e *Engine) ResumeRoles(s *Session, producer, worker bool) {
	if producer && !s.producer {
		s.producer = true
		e.stats.Producers++
	}
	if worker {
		e.becomeWorker(s)
	}
}

// ResumeTubes makes a new session use and watch the tubes of an earlier leader's session.
// watching is in the order of list-tubes-watched. It omits tubes that the limits forbid.
func (e *Engine) ResumeTubes(s *Session, using []byte, watching [][]byte) {
	e.Use(s, using)
	s.watches = nil
	e.defaultTube.watching--
	for _, name := range watching {
		if e.hasRoomForTube(name) {
			e.watch(s, e.tubeOf(name))
		}
	}
	if len(s.watches) == 0 {
		e.watch(s, e.defaultTube)
	}
}
