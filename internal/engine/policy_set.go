package engine

import (
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
)

// Policies find the policy of a tube. They do not change. To the engine the settings that
// are set while it runs are a text, which only Policies understand.
type Policies interface {
	// Of returns the policy of a tube, or nil. It has the same settings each time.
	Of(tube string) *Policy

	// With returns policies in which a pattern of tubes has these settings, in place of
	// those that were set for it before; an empty text is no settings.
	With(pattern, settings string) Policies
}

// PolicyFunc is a Policies that ignores settings made while the engine runs.
type PolicyFunc func(tube string) *Policy

// Of implements Policies.
func (f PolicyFunc) Of(tube string) *Policy { return f(tube) }

// With implements Policies.
func (f PolicyFunc) With(string, string) Policies { return f }

// MaxPolicies is the maximum number of patterns with settings made while the engine runs.
const MaxPolicies = 1000

// policies are those of an engine.
//
// I25. inForce is configured with all of set, or nil if configured is.
type policies struct {
	configured Policies          // nil: none acts
	set        map[string]string // while the engine ran: settings, by the pattern. They are facts, whatever is configured
	inForce    Policies

	pass     pass // over Engine.tubes, which gives them their policies
	restored bool // no client was served since: all tubes get theirs at once
}

// A pass goes over places from 0 on, a slice of them in a turn. A change that concerns all
// places does not send it back to 0: it goes on, and ends one full round after the last
// change. So changes that come again and again keep no place from being reached.
type pass struct {
	at       int // the next place
	until    int // where the round ends, once it has wrapped
	wrapped  bool
	underway bool
	wraps    uint64 // number of times that it went back to 0
}

// A passMark is a moment of a pass.
type passMark struct {
	at    int
	wraps uint64
}

func (p *pass) mark() passMark { return passMark{p.at, p.wraps} }

// roundSince reports whether the pass has visited all places since a mark.
func (p *pass) roundSince(m passMark) bool {
	return !p.underway || p.wraps > m.wraps+1 || p.wraps == m.wraps+1 && p.at >= m.at
}

// begin starts a round from the present place.
func (p *pass) begin() { p.until, p.wrapped, p.underway = p.at, false, true }

// more reports whether places are left in the round. There are n places now.
func (p *pass) more(n int) bool {
	if p.at >= n && !p.wrapped {
		p.at, p.wrapped = 0, true
		p.wraps++
	}
	p.underway = p.underway && p.at < n && (!p.wrapped || p.at < p.until)
	return p.underway
}

// configure replaces those that were not set while the engine ran.
func (p *policies) configure(configured Policies) {
	p.configured, p.inForce = configured, configured
	if configured == nil {
		p.pass.underway = false
		return
	}
	for pattern, settings := range p.set {
		p.with(pattern, settings)
	}
	p.pass.begin()
}

func (p *policies) with(pattern, settings string) {
	if p.inForce != nil {
		p.inForce = p.inForce.With(pattern, settings)
	}
}

// put stores the settings of a pattern.
func (p *policies) put(pattern, settings string) {
	if p.set == nil {
		p.set = make(map[string]string)
	}
	if p.set[pattern] = settings; settings == "" {
		delete(p.set, pattern)
	}
	p.with(pattern, settings)
	p.pass.begin()
}

// SetPolicies replaces the policies, but for what SetPolicy has set. Tick gives all tubes
// theirs in the turns that follow, and a policy acts on a job at the job's next event.
// nil is for a server that stops: no end of a reservation counts from now on, and tubes
// that are shut stay shut.
func (e *Engine) SetPolicies(p Policies) { e.policies.configure(p) }

// Policies returns the policies in force, or nil if there are none.
func (e *Engine) Policies() Policies { return e.policies.inForce }

// PolicyOf returns the policy of a tube, which need not exist, or nil.
func (e *Engine) PolicyOf(tube string) *Policy {
	if e.policies.inForce == nil {
		return nil
	}
	e.turnWork += lookupWork + len(e.policies.set)*(1+len(tube)/globBytesPerLook)/looksPerUnit
	return e.policies.inForce.Of(tube)
}

// SetPolicy sets the settings of a pattern of tubes, in place of those that were set for
// it before; an empty text is no settings. They outlive the process, and keep no tube
// alive. The tube of that name has them at once, the others when Tick comes to them in
// the turns that follow. The caller has checked the text. The outcome is TooBig if there
// are MaxPolicies.
func (e *Engine) SetPolicy(pattern, settings string) Outcome {
	before, there := e.policies.set[pattern]
	switch {
	case before == settings && !e.attempts.refused:
		return OK
	case !there && len(e.policies.set) >= MaxPolicies:
		return TooBig
	}
	if e.opt.Admit != nil {
		if o := e.opt.Admit(PolicySet, pattern, len(settings)); o != OK {
			return o
		}
	}
	if e.policies.put(pattern, settings); e.attempts.refused {
		e.attempts.begin()
	}
	if e.opt.Logged {
		e.changes = append(e.changes, policySet(pattern, settings))
	}
	if t := e.byName[pattern]; t != nil {
		e.setPolicy(t, e.PolicyOf(pattern))
	}
	return OK
}

func policySet(pattern, settings string) Change {
	return Change{Kind: PolicySet, Tube: pattern, Body: []byte(settings), BodyLen: len(settings)}
}

// NumPoliciesSet returns the number of patterns with settings that SetPolicy has set.
func (e *Engine) NumPoliciesSet() int { return len(e.policies.set) }

// SetPolicyOf returns what SetPolicy has set for a pattern, or nothing.
func (e *Engine) SetPolicyOf(pattern string) (settings string) { return e.policies.set[pattern] }

// PoliciesSet yields a PolicySet for each pattern with settings that SetPolicy has set,
// by pattern.
func (e *Engine) PoliciesSet() iter.Seq[Change] {
	return func(yield func(Change) bool) {
		for _, pattern := range slices.Sorted(maps.Keys(e.policies.set)) {
			if !yield(policySet(pattern, e.policies.set[pattern])) {
				return
			}
		}
	}
}

// restorePolicy applies a PolicySet.
func (e *Engine) restorePolicy(c Change) {
	e.policies.put(strings.Clone(c.Tube), string(c.Body))
	e.policies.restored = true
}

// A SettledPolicy is the progress of a policy that SetPolicy has just set: first all tubes
// have it, then the attempts of their jobs are logged.
type SettledPolicy struct {
	tubes, jobs passMark
	second      bool
}

// BeginSettled returns the progress of the last SetPolicy.
func (e *Engine) BeginSettled() SettledPolicy { return SettledPolicy{tubes: e.policies.pass.mark()} }

// Settled reports whether all tubes of a policy have it, and whether their jobs have had the
// attempts that they had before, in any engine that restores them. Later changes do not
// delay it. The outcome is not OK if the Log refused an attempt.
func (e *Engine) Settled(s *SettledPolicy) (done bool, o Outcome) {
	if !s.second {
		if !e.policies.pass.roundSince(s.tubes) {
			return false, OK
		}
		s.second, s.jobs = true, e.attempts.mark()
	}
	if !e.attempts.roundSince(s.jobs) {
		return false, OK
	}
	if e.attempts.refused {
		return true, OutOfMemory
	}
	return true, OK
}

// outdated reports whether Tick calls updatePolicies.
func (e *Engine) outdated() bool {
	return e.policies.pass.underway || e.attempts.underway || e.keys.pass.underway
}

// updatePolicies looks up the policies of a slice of the tubes, and the attempts and keys of
// a slice of the jobs. New tubes have their policies already. After Restore it does all at once, so
// that no session reserves a job of a tube that a policy pauses.
func (e *Engine) updatePolicies() {
	p := &e.policies
	for p.pass.more(len(e.tubes)) {
		if !p.restored && (e.tickSpent() || (e.keys.pass.underway || e.attempts.underway) && e.turnWork >= e.workLimit/tickShare/2) {
			break // the other half is for the jobs
		}
		e.turnWork++
		t := e.tubes[p.pass.at]
		p.pass.at++
		if t != nil {
			e.setPolicy(t, e.PolicyOf(t.name))
		}
	}
	e.logAttempts()
	if e.updateKeys(p.restored); e.outdated() {
		return
	}
	if p.restored {
		e.turnWork = 0
	}
	p.restored = false
}

// pausedAt reports whether the policy pauses its tubes at a moment, in ns since 1970.
func (p *Policy) pausedAt(moment int64) bool {
	return p != nil && p.PausedUntil != 0 && p.PausedUntil > moment
}

// pauseEnds returns when the policy pauses its tubes no more, on the clock of an engine;
// Never: it has no end.
func (p *Policy) pauseEnds(epoch int64) int64 {
	if p.PausedUntil == math.MaxInt64 {
		return Never
	}
	return p.PausedUntil - epoch
}
