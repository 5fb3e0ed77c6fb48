package engine

import "math"

// Policies finds the policy of a tube. It is immutable. The engine treats settings made
// at run time as text, which only Policies interprets.
type Policies interface {
	// Of returns the policy of a tube, or nil. Repeated calls return equal settings.
	Of(tube string) *Policy

	// With returns policies in which settings replace the run-time settings of a pattern.
	// An empty text removes them.
	With(pattern, settings string) Policies
}

// PolicyFunc is a Policies that ignores run-time settings.
type PolicyFunc func(tube string) *Policy

// Of implements Policies.
func (f PolicyFunc) Of(tube string) *Policy { return f(tube) }

// With implements Policies.
func (f PolicyFunc) With(string, string) Policies { return f }

// MaxPolicies is the maximum number of patterns with run-time settings.
const MaxPolicies = 1000

// policies contains the policies of an engine.
//
// I25. inForce is configured with all of set, or nil if configured is nil.
type policies struct {
	configured Policies              // if nil, no policy acts
	set        table[string, string] // run-time settings, by pattern; they are durable
	inForce    Policies

	pass     pass // visits Engine.tubes to update their policies
	restored bool // Restore has set policies, and no client has been served since: all tubes get them at once
}

// A pass visits all places in order, a slice in each turn. A change during a round is
// served by another round, so that repeated changes do not keep the pass from any place.
type pass struct {
	at     int // the next place
	rounds int // number of rounds to complete: the current round and at most another
}

// begin requests a round that starts now or later.
func (p *pass) begin() {
	if p.rounds = 1; p.at > 0 {
		p.rounds = 2
	}
}

// end drops all requests.
func (p *pass) end() { *p = pass{} }

func (p *pass) underway() bool { return p.rounds > 0 }

// more reports whether places are left. n is the current number of places.
func (p *pass) more(n int) bool {
	for ; p.rounds > 0; p.rounds-- {
		if p.at < n {
			return true
		}
		p.at = 0
	}
	return false
}

// configure replaces the configured policies and keeps the run-time settings.
func (p *policies) configure(configured Policies) {
	p.configured, p.inForce = configured, configured
	if configured == nil {
		p.pass.end()
		return
	}
	for pattern, settings := range p.set.of {
		p.with(pattern, settings)
	}
	p.pass.begin()
}

func (p *policies) with(pattern, settings string) {
	if p.inForce != nil {
		p.inForce = p.inForce.With(pattern, settings)
	}
}

// put stores the run-time settings of a pattern.
func (p *policies) put(pattern, settings string) {
	if settings == "" {
		p.set.remove(pattern)
	} else {
		p.set.set(pattern, settings)
	}
	p.with(pattern, settings)
	p.pass.begin()
}

// SetPolicies replaces the configured policies and keeps the run-time settings. Tick
// updates all tubes in the following turns. A policy acts on a job at the job's next
// event. A stopping server passes nil: then the end of a reservation does not count, and
// shut tubes stay shut.
func (e *Engine) SetPolicies(p Policies) { e.policies.configure(p) }

// Policies returns the current policies, or nil if there are none.
func (e *Engine) Policies() Policies { return e.policies.inForce }

// PolicyOf returns the policy of a tube, which need not exist, or nil.
func (e *Engine) PolicyOf(tube string) *Policy {
	if e.policies.inForce == nil {
		return nil
	}
	e.turnWork += lookupWork + len(e.policies.set.of)*(1+len(tube)/globBytesPerStep)/stepsPerUnit
	return e.policies.inForce.Of(tube)
}

// SetPolicy replaces the run-time settings of a pattern. An empty text removes them. The
// settings are durable and do not keep a tube alive. They apply at once to the tube with
// that name, and to other tubes when Tick reaches them. The caller must have checked the
// text. The outcome is TooBig if there are already MaxPolicies patterns.
func (e *Engine) SetPolicy(pattern, settings string) Outcome {
	before, there := e.policies.set.of[pattern]
	switch {
	case before == settings && !e.jobPass.refused:
		return OK
	case !there && len(e.policies.set.of) >= MaxPolicies:
		return TooBig
	}
	if o := e.setNamed(PolicySet, pattern, settings); o != OK {
		return o
	}
	if e.jobPass.refused {
		e.jobPass.beginAttempts()
	}
	if t := e.byName[pattern]; t != nil {
		e.setPolicy(t, e.PolicyOf(pattern))
	}
	return OK
}

// SetPolicyOf returns the run-time settings of a pattern, or an empty string.
func (e *Engine) SetPolicyOf(pattern string) (settings string) { return e.policies.set.of[pattern] }

// Settled reports whether all tubes have their current policies and the log contains the
// earlier attempts of their jobs. The outcome is not OK if the Log refused an attempt. A
// later SetPolicy delays it.
func (e *Engine) Settled() (done bool, o Outcome) {
	switch {
	case e.outdated():
		return false, OK
	case e.jobPass.refused:
		return true, OutOfMemory
	}
	return true, OK
}

// outdated reports whether Tick must call updatePolicies.
func (e *Engine) outdated() bool { return e.policies.pass.underway() || e.jobPass.underway() }

// updatePolicies updates the policies of a slice of the tubes, and continues the jobPass.
// New tubes already have their policies. After Restore, it updates everything at once, so
// that no session reserves a job from a tube that a policy pauses.
func (e *Engine) updatePolicies() {
	p := &e.policies
	for p.pass.more(len(e.tubes)) {
		if !p.restored && (e.tickSpent() || e.jobPass.underway() && e.turnWork >= e.workLimit/tickShare/2) {
			break // the other half is for the jobs
		}
		e.turnWork++
		t := e.tubes[p.pass.at]
		p.pass.at++
		if t != nil {
			e.setPolicy(t, e.PolicyOf(t.name))
		}
	}
	if e.visitJobs(p.restored); e.outdated() {
		return
	}
	if p.restored {
		e.turnWork = 0
	}
	p.restored = false
}

// A jobPass visits all jobs after the policy of a tube with jobs has changed. It indexes
// the keys of the jobs. For policies that permit a single attempt, it also logs
// reservations that the Log lacks, because an earlier reservation uses up the attempt.
type jobPass struct {
	pass
	refused bool // the Log refused an attempt, so the pass logs no others
}

// beginAttempts starts the pass if the attempts of all jobs must be logged.
func (p *jobPass) beginAttempts() {
	p.begin()
	p.refused = false
}

// visitJobs visits a slice of the jobs, or all jobs if atOnce is set.
func (e *Engine) visitJobs(atOnce bool) {
	p := &e.jobPass
	for n, seen := 0, 0; p.more(int(e.jobs.places())); {
		if !atOnce && (e.tickSpent() || e.enoughChanges(n)) {
			return
		}
		if seen++; seen%stepsPerUnit == 0 {
			e.turnWork++
		}
		i, next, ok := e.jobs.next(slot(p.at))
		if p.at = int(next); !ok {
			continue
		}
		j := e.jobs.at(i)
		t := e.tubeOfJob(j)
		if e.keys.remove(i) {
			e.turnWork++
		}
		if t.keyed {
			e.turnWork += 2
			e.noteKey(t, i, j)
		}
		if !atOnce && !p.refused && j.packing&unlogged != 0 && t.policy.singleAttempt() {
			e.logAttempt(t, i, j)
			n++
		}
	}
}

// logAttempt logs the reservation of a job.
func (e *Engine) logAttempt(t *tube, i slot, j *job) {
	if e.admit(JobState, t, j.bodyLen) != OK {
		e.notePolicy(PolicyAct{PolicySkipped, t.name, j.id, ""})
		e.jobPass.refused = true
		return
	}
	e.emitState(i, j)
}

// pausedAt reports whether the policy pauses its tubes at a given time, in ns since 1970.
func (p *Policy) pausedAt(moment int64) bool {
	return p != nil && p.PausedUntil != 0 && p.PausedUntil > moment
}

// pauseEnds returns the time at which the policy's pause ends, on the engine's clock, or
// Never.
func (p *Policy) pauseEnds(epoch int64) int64 {
	if p.PausedUntil == math.MaxInt64 {
		return Never
	}
	return p.PausedUntil - epoch
}
