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
	// Of returns the policy of a tube, or nil. It is the same each time.
	Of(tube string) *Policy

	// With returns policies in which a pattern of tubes has these settings, in place of
	// those that were set for it before; an empty text is no settings.
	With(pattern, settings string) Policies
}

// PolicyFunc is Policies that ignore what is set while the engine runs.
type PolicyFunc func(tube string) *Policy

// Of implements Policies.
func (f PolicyFunc) Of(tube string) *Policy { return f(tube) }

// With implements Policies.
func (f PolicyFunc) With(string, string) Policies { return f }

// MaxPolicies is how many patterns may have settings that were set while the engine ran.
const MaxPolicies = 1000

// policies are those of an engine.
//
// I25. inForce is configured with all of set, or nil if configured is.
type policies struct {
	configured Policies          // nil: none acts
	set        map[string]string // while the engine ran: settings, by the pattern. They are facts, whatever is configured
	inForce    Policies

	outdated     bool // tubes have the policies of before
	outdatedFrom int  // place in Engine.tubes of the first of them
	restored     bool // no client was served since: all tubes get theirs at once
}

// configure replaces those that were not set while the engine ran.
func (p *policies) configure(configured Policies) {
	p.configured, p.inForce = configured, configured
	if configured == nil {
		p.outdated = false
		return
	}
	for pattern, settings := range p.set {
		p.with(pattern, settings)
	}
	p.outdated, p.outdatedFrom = true, 0
}

func (p *policies) with(pattern, settings string) {
	if p.inForce != nil {
		p.inForce = p.inForce.With(pattern, settings)
	}
}

// put notes what was set for a pattern.
func (p *policies) put(pattern, settings string) {
	if p.set == nil {
		p.set = make(map[string]string)
	}
	if p.set[pattern] = settings; settings == "" {
		delete(p.set, pattern)
	}
	p.with(pattern, settings)
	p.outdated, p.outdatedFrom = true, 0
}

// SetPolicies replaces the policies, but for what SetPolicy has set. Tick gives all tubes
// theirs in the turns that follow, and a policy acts on a job at the job's next event.
// nil is for a server that stops: no end of a reservation counts from now on, and tubes
// that are shut stay shut.
func (e *Engine) SetPolicies(p Policies) { e.policies.configure(p) }

// Policies returns those in force; nil: none acts.
func (e *Engine) Policies() Policies { return e.policies.inForce }

// PolicyOf returns the policy of a tube, which need not exist, or nil.
func (e *Engine) PolicyOf(tube string) *Policy {
	if e.policies.inForce == nil {
		return nil
	}
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
	case before == settings:
		return OK
	case !there && len(e.policies.set) >= MaxPolicies:
		return TooBig
	}
	if e.opt.Admit != nil {
		if o := e.opt.Admit(PolicySet, pattern, len(settings)); o != OK {
			return o
		}
	}
	e.policies.put(pattern, settings)
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

// updatePolicies looks up the policies of a slice of the tubes. New tubes have theirs.
// After Restore it does so for all tubes, so that no session reserves a job of a tube
// that a policy pauses.
func (e *Engine) updatePolicies() {
	p := &e.policies
	for ; p.outdatedFrom < len(e.tubes); p.outdatedFrom++ {
		if !p.restored && e.tickSpent() {
			return
		}
		e.turnWork += lookupWork + len(p.set)/looksPerUnit
		if t := e.tubes[p.outdatedFrom]; t != nil {
			e.setPolicy(t, e.PolicyOf(t.name))
		}
	}
	if !e.updateKeys(p.restored) {
		return
	}
	if p.restored {
		e.turnWork = 0
	}
	p.restored, p.outdated = false, false
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
