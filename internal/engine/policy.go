package engine

import (
	"math/bits"
	"math/rand/v2"
	"strings"
)

// A Policy defines how the engine treats the jobs in a tube. Most settings act when a
// reservation ends without a delete or bury: by a timeout, the end of the session, or a
// release. Others act when a job expires (policy_stale.go) or is put (unique.go). The
// remaining settings control a gate (policy_gate.go). The zero value does nothing.
//
// A Policy is immutable once an engine has it, and can be shared by many tubes.
type Policy struct {
	// MaxAttempts, MaxTimeouts and MaxReleases are the maximum numbers of reservations,
	// timeouts and releases before a job is exhausted. Zero means no limit. Each kick of
	// the buried job grants the same numbers again. If MaxAttempts is 1, each reservation
	// is a Change, so that even a restored engine does not reserve the job again.
	MaxAttempts, MaxTimeouts, MaxReleases uint32

	Exhausted Exhausted // action on an exhausted job
	DeadTube  string    // destination of exhausted jobs; "{tube}" stands for the job's tube

	// RetryDelay is the delay in ns after a job's first failure. Each further failure
	// multiplies it by RetryFactor, up to RetryMax. A random part, up to the fraction
	// RetryJitter, is subtracted. A release with a delay keeps its delay.
	RetryDelay, RetryMax     int64
	RetryFactor, RetryJitter float64
	RetryOn                  Ends // ends of a reservation after which the delay applies

	// Snooze is the minimum delay, in ns, of a release that counts neither as a reservation
	// nor as a release of the job. Zero means that each release counts.
	Snooze int64

	// TTL is the maximum age, in ns since its put, of a ready or delayed job. Older jobs
	// are never reserved. Zero means no limit.
	TTL        int64
	BuryAtTTL  bool  // whether a job older than TTL is buried; otherwise it is deleted
	KeepBuried int64 // age in ns at which a buried job is deleted; 0 means never

	// Unique identifies duplicates: a job is not put if another job has the same key. If
	// it is nil, duplicates are allowed. See unique.go.
	Unique      *Key // nil if duplicates are allowed
	UniqueWhile While
	UniqueMode  UniqueMode

	PausedUntil int64  // no job is reserved before this time, in ns since 1970; 0 means not paused, math.MaxInt64 never ends
	MaxReserved uint32 // maximum number of reserved jobs; 0 means no limit
	Interval    int64  // average ns between two reservations; 0 means no limit
	Burst       uint32 // maximum number of reservations at once; 0 means the number per second, but at least 1
}

// Ends is a set of ends of a reservation that leave the job undone. Policies act after
// the first three.
type Ends uint8

const (
	Timeout Ends = 1 << iota // the TTR expired
	Lost                     // the session has ended
	Release
	Bury
	Taken // an operator released or buried the job
)

// String returns the name of a single end, or an empty string.
func (x Ends) String() string {
	return [...]string{"", "timeout", "closed", "released", "buried", "taken", "", "", ""}[bits.Len8(uint8(x))]
}

// Exhausted is the action on an exhausted job.
type Exhausted uint8

const (
	BuryExhausted Exhausted = iota
	DeleteExhausted
	MoveExhausted // move to Policy.DeadTube, and bury there
)

// Limited reports whether the policy can exhaust jobs.
func (p *Policy) Limited() bool { return p.MaxAttempts|p.MaxTimeouts|p.MaxReleases != 0 }

// counted reports whether the policy depends on the number of failures.
func (p *Policy) counted() bool { return p.Limited() || p.RetryDelay > 0 }

// A PolicyEvent is an action of a policy.
type PolicyEvent uint8

const (
	OutOfAttempts PolicyEvent = iota // a job was exhausted by Policy.MaxAttempts
	OutOfTimeouts
	OutOfReleases
	Expired       // a job was older than Policy.TTL
	BuriedTooLong // a job was buried for longer than Policy.KeepBuried
	Retried       // a failed job was delayed
	PolicySkipped // the Log refused the action
	DeadTubeFull  // an exhausted job was buried in its own tube, because the dead tube refused it
	Deduplicated  // a put was a duplicate, by Policy.Unique
	WithoutKey    // a job without a key was put
	NumPolicyEvents
)

// String returns the name of the setting that caused the action, or of the event.
func (v PolicyEvent) String() string {
	return [NumPolicyEvents]string{"max-attempts", "max-timeouts", "max-releases", "ttl", "keep-buried", "retry-delay", "skipped", "dead-tube", "unique", "no-key"}[v]
}

// PolicyCounts contains the number of actions of policies since the engine was created,
// by PolicyEvent.
type PolicyCounts [NumPolicyEvents]uint64

// Exhausted returns the number of exhausted jobs.
func (c *PolicyCounts) Exhausted() uint64 {
	return c[OutOfAttempts] + c[OutOfTimeouts] + c[OutOfReleases]
}

// Expired returns the number of expired jobs.
func (c *PolicyCounts) Expired() uint64 { return c[Expired] + c[BuriedTooLong] }

// PolicyCounts returns the number of actions of policies.
func (e *Engine) PolicyCounts() PolicyCounts { return e.policyCounts }

// A PolicyAct is an event and its job.
type PolicyAct struct {
	Event PolicyEvent
	Tube  string
	Job   uint64 // zero if the job has no id yet
	To    string // dead tube to which the job moves; empty if it does not move
}

// notePolicy counts and reports an action of a policy.
func (e *Engine) notePolicy(act PolicyAct) {
	e.policyCounts[act.Event]++
	if e.opt.PolicyActed != nil {
		e.opt.PolicyActed(act)
	}
}

// releaseLost ends a reservation whose TTR expired or whose session has ended. The end is
// a Change, so that the Failure outlives the process, and policies continue to count. If
// the Log refuses the Change, the job becomes ready without a Failure.
func (e *Engine) releaseLost(now int64, i slot, end Ends) {
	j := e.jobs.at(i)
	t := e.tubeOfJob(j)
	if e.exhaust(t, i, j, end, nil) {
		return
	}
	if e.admit(JobState, t, j.bodyLen) != OK {
		if t.policy != nil && e.policies.inForce != nil && t.policy.counted() {
			e.notePolicy(PolicyAct{PolicySkipped, t.name, j.id, ""})
		}
		e.requeue(now, i)
		return
	}
	e.noteEnd(i, j, end)
	e.endReservation(now, t, i, j, now+e.retryDelay(t, j, end))
}

// releaseTerms contains the priority and delay of a release, and the end: Release or
// Taken.
type releaseTerms struct {
	pri, delay uint32
	end        Ends
}

// released records that a job is about to be released.
func (e *Engine) released(t *tube, j *job, as releaseTerms) {
	e.endWork(t, j)
	c := e.jobs.held(j)
	if e.snoozes(t, as) {
		c.Reserves--
	} else {
		c.Releases++
	}
	t.counts.Releases++
	e.stats.Releases++
	j.pri, j.delayAndCounts = as.pri, as.delay
}

// snoozes reports whether the policy of a tube does not count a release.
func (e *Engine) snoozes(t *tube, as releaseTerms) bool {
	p := t.policy
	return p != nil && e.policies.inForce != nil && p.Snooze > 0 && int64(as.delay)*second >= p.Snooze
}

// exhaust ends the reservation of a job if the job is exhausted. It returns false, and
// does nothing, if another attempt is allowed or the Log refuses the change. release is
// nil unless the job is being released.
func (e *Engine) exhaust(t *tube, i slot, j *job, end Ends, release *releaseTerms) bool {
	p := t.policy
	if p == nil || e.policies.inForce == nil {
		return false
	}
	over := p.exceeded(e.jobs.held(j), end)
	return over != NumPolicyEvents && e.finishJob(over, t, i, j, end, release)
}

// finishJob ends the life of a job in its tube, as the policy defines for the reason why.
// If the dead tube refuses the job, finishJob buries it in its own tube. It returns
// false, and does nothing, if the Log refuses that. how is the end of the attempt of a
// reserved job. release is nil unless the job is being released.
func (e *Engine) finishJob(why PolicyEvent, t *tube, i slot, j *job, how Ends, release *releaseTerms) bool {
	kind, dead := t.policy.disposition(why, t.name)
	var to *tube
	refused := false
	if kind == JobMoved {
		var o Outcome
		if to, o = e.roomIn(dead, j); o != OK {
			kind, refused = JobState, true
		}
	}
	if kind != JobMoved && e.admit(kind, t, j.bodyLen) != OK {
		e.notePolicy(PolicyAct{PolicySkipped, t.name, j.id, dead})
		return false
	}
	if refused {
		e.notePolicy(PolicyAct{DeadTubeFull, t.name, j.id, dead})
		dead = ""
	}
	e.turnWork += finishWork
	e.notePolicy(PolicyAct{why, t.name, j.id, dead})
	if why < Expired {
		t.counts.Exhausted++
		e.fails(t)
	}
	if release != nil {
		e.released(t, j, *release)
		how = release.end
	}
	if kind != JobDeleted && j.state() == Reserved {
		e.noteEnd(i, j, how)
	}
	switch kind {
	case JobDeleted:
		e.emitDeleted(t, i, j)
		e.removeJob(i, j)
	case JobMoved:
		was := e.origins.of[j.id]
		if was == "" { // otherwise the job is dead again, in a tube of dead jobs
			e.setOrigin(j.id, t.name)
		}
		e.moveTo(i, j, to, was, func() { e.makeBuried(to, i, j, why.String()) })
		e.attachBuried(to, i, j)
		e.removeIfUnused(t)
	default:
		e.detach(t, i, j)
		e.makeBuried(t, i, j, why.String())
		e.emitState(i, j)
		e.attachBuried(t, i, j)
	}
	return true
}

// disposition returns the kind of change that removes a job from a tube and, for a
// JobMoved, the dead tube. If the dead tube is the job's own tube, or its name would be
// too long, the job is buried in its own tube.
func (p *Policy) disposition(why PolicyEvent, tube string) (kind ChangeKind, dead string) {
	switch {
	case why == BuriedTooLong, why == Expired && !p.BuryAtTTL, why < Expired && p.Exhausted == DeleteExhausted:
		return JobDeleted, ""
	case why < Expired && p.Exhausted == MoveExhausted:
		dead = strings.ReplaceAll(p.DeadTube, "{tube}", tube)
		if dead != tube && len(dead) <= maxTubeName {
			return JobMoved, dead
		}
	}
	return JobState, ""
}

// exceeded returns the limit that a job with c exceeds if its reservation ends with end,
// or NumPolicyEvents if it exceeds none.
func (p *Policy) exceeded(c *coldJob, end Ends) PolicyEvent {
	releases := c.Releases
	if end == Release {
		releases++
	}
	allowed := 1 + uint64(c.allowances(Reserved))
	reached := func(n, most uint32) bool { return most > 0 && uint64(n) >= uint64(most)*allowed }
	switch {
	case reached(c.Reserves, p.MaxAttempts):
		return OutOfAttempts
	case reached(c.Timeouts, p.MaxTimeouts):
		return OutOfTimeouts
	case reached(releases, p.MaxReleases):
		return OutOfReleases
	}
	return NumPolicyEvents
}

// retryDelay returns the delay in ns of a job whose reservation ends with end.
func (e *Engine) retryDelay(t *tube, j *job, end Ends) int64 {
	p := t.policy
	if p == nil || e.policies.inForce == nil || p.RetryDelay == 0 || p.RetryOn&end == 0 {
		return 0
	}
	e.notePolicy(PolicyAct{Retried, t.name, j.id, ""})
	return p.backoff(j.id, p.failures(e.jobs.held(j)))
}

// allowances returns the number of additional allowances that a job in state s has: at
// most one for each bury that was followed by a kick. A kick that only ends a delay adds
// none.
func (c *coldJob) allowances(s State) uint32 {
	buries := c.Buries
	if s == Buried && buries > 0 {
		buries--
	}
	return min(c.Kicks, buries)
}

// failures returns the number of failures of a job in its current allowance, including
// this one.
func (p *Policy) failures(c *coldJob) uint32 {
	n := max(c.Reserves, 1)
	if p.MaxAttempts > 0 {
		n -= p.MaxAttempts * min(c.allowances(Reserved), (n-1)/p.MaxAttempts)
	}
	return n
}

// backoff returns the delay of a job after its n-th failure. Its random part is a
// function of the job, so the result is always the same.
func (p *Policy) backoff(id uint64, n uint32) int64 {
	d, most := float64(p.RetryDelay), float64(p.RetryMax)
	for ; n > 1 && d < most && p.RetryFactor > 1; n-- {
		d *= p.RetryFactor
	}
	random := rand.New(rand.NewPCG(id, uint64(n))) // #nosec G404 -- spreads retries
	return int64(min(d, most) * (1 - p.RetryJitter*random.Float64()))
}
