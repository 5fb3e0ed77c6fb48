package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/policy"
	"github.com/beanpole-mq/beanpole/internal/rights"
)

// policiesOf returns the effective policies.
func policiesOf(e *engine.Engine) (*policy.Set, error) {
	if set, ok := e.Policies().(*policy.Set); ok {
		return set, nil
	}
	return nil, problemf(http.StatusServiceUnavailable, "the server is stopping")
}

// inForce returns the effective policies.
func (r *request) inForce() (set *policy.Set, err error) {
	err = r.turn(func(e *engine.Engine, _ int64) (err error) {
		set, err = policiesOf(e)
		return err
	})
	return set, err
}

// sourceOf returns the source of a rule.
func sourceOf(rule *policy.Rule) (source string) {
	switch {
	case rule == nil:
		return "default"
	case rule.Number > 0:
		return "file"
	}
	return "runtime"
}

// policyOf returns a rule as the client sees it: without the name of a dead tube on which
// the client has no right.
func (r *request) policyOf(rule *policy.Rule) admin.Policy {
	p := admin.Policy{Pattern: rule.Pattern, Source: sourceOf(rule), Number: int64(rule.Number), Settings: rule.Settings()}
	if dead, set := p.Settings[policy.DeadTube]; set && !r.onDeadTubes(anyNamed, dead, rule.Pattern) {
		delete(p.Settings, policy.DeadTube)
	}
	return p
}

// onDeadTubes reports whether the client has rights on all dead tubes of the tubes that
// match a pattern. dead is the value of dead-tube. The default value requires no rights.
func (r *request) onDeadTubes(n rights.Need, dead, pattern string) bool {
	return dead == policy.DefaultDeadTube || r.caller.Identity.Meets(n, policy.DeadTubes(dead, pattern))
}

func (r *request) listPolicies(*admin.None) (all admin.Policies, err error) {
	set, err := r.inForce()
	if err != nil {
		return all, err
	}
	all.Policies = []admin.Policy{}
	for _, rule := range set.Rules() {
		if r.caller.Identity.Meets(statsNamed, rule.Pattern) {
			all.Policies = append(all.Policies, r.policyOf(rule))
		}
	}
	return all, nil
}

func (r *request) explainPolicy(*admin.OfTube) (p admin.TubePolicy, err error) {
	set, err := r.inForce()
	if err != nil {
		return p, err
	}
	p.Tube = r.tube
	for _, v := range set.Explain(r.tube) {
		s := admin.SettingInForce{Name: v.Name, Value: v.Text, Source: sourceOf(v.Rule), Default: v.Default, Takes: v.Takes(), Words: v.Words(), About: v.Doc}
		if v.Rule != nil {
			s.Pattern, s.Number = v.Rule.Pattern, int64(v.Rule.Number)
		}
		if v.Name == policy.DeadTube && !r.onDeadTubes(anyNamed, v.Text, r.tube) {
			s.Value, s.Hidden = "", true
		}
		p.Settings = append(p.Settings, s)
	}
	return p, nil
}

func (r *request) setPolicy(in *admin.SetPolicy) (p admin.Policy, err error) {
	if len(in.Set)+len(in.Unset) == 0 {
		return p, problemf(http.StatusBadRequest, `no change: want {"set": {"max-attempts": "5"}}, or {"unset": ["max-attempts"]}`)
	}
	return r.editPolicy(in.Pattern, func(text string) (string, error) {
		text, err := policy.Edit(text, in.Set, in.Unset, time.Now())
		if _, set := in.Set[policy.DeadTube]; err == nil && set {
			err = r.fillsDeadTubes(policy.Parse(text)[policy.DeadTube], in.Pattern)
		}
		return text, err
	})
}

// fillsDeadTubes checks the rights on the tubes that receive the exhausted jobs of a
// pattern's tubes.
func (r *request) fillsDeadTubes(dead, pattern string) error {
	if r.onDeadTubes(fillsNamed, dead, pattern) {
		return nil
	}
	r.refused = []string{policy.DeadTubes(dead, pattern)}
	return problemf(http.StatusForbidden, "%s: %s needs %s on %s, to move exhausted jobs there",
		policy.DeadTube, r.op.ID, fillsNamed, r.refused[0])
}

func (r *request) deletePolicy(in *admin.OfPolicy) (none admin.None, err error) {
	_, err = r.editPolicy(in.Pattern, func(text string) (string, error) {
		if text == "" {
			return "", problemf(http.StatusNotFound, "%s has no run-time settings; change other settings in the configuration file", in.Pattern)
		}
		return "", nil
	})
	return none, err
}

// editPolicy changes the settings of a pattern. It requires the right on all tubes that
// match the pattern. It returns when all these tubes have the policy and, if the policy
// permits a single attempt, when the attempts of reserved jobs are durable.
func (r *request) editPolicy(pattern string, edit func(text string) (string, error)) (p admin.Policy, err error) {
	if err := policy.CheckPattern(pattern); err != nil {
		return p, problemf(http.StatusBadRequest, "%v", err)
	}
	if err := r.permittedOn(manageNamed, "every tube that "+pattern+" matches", pattern); err != nil {
		return p, err
	}
	err = r.turn(func(e *engine.Engine, _ int64) error {
		if _, err := policiesOf(e); err != nil {
			return err
		}
		before := e.SetPolicyOf(pattern)
		text, err := edit(before)
		if err != nil {
			if admin.StatusOf(err) == 0 {
				err = problemf(http.StatusBadRequest, "%v", err)
			}
			return err
		}
		r.note("before", oneLine(before))
		r.note("after", oneLine(text))
		o := e.SetPolicy(pattern, text)
		if o == engine.TooBig {
			return problemf(http.StatusInsufficientStorage, "too many patterns with settings (%d); unset some ('beanpole policy show'), or use one pattern for many tubes", engine.MaxPolicies)
		} else if o != engine.OK {
			return outcomeProblem(o)
		}
		set, _ := policiesOf(e)
		p = r.policyOf(&policy.Rule{Pattern: pattern})
		if rule := set.Runtime(pattern); rule != nil {
			p = r.policyOf(rule)
			p.Warnings = set.WarningsOf(rule)
		}
		return nil
	})
	if err != nil {
		return p, err
	}
	return p, r.turns(func(e *engine.Engine, _ int64) (more bool, err error) {
		done, o := e.Settled()
		if o != engine.OK {
			return false, problemf(http.StatusInsufficientStorage, "the policy is set, but the journal has no space to record the attempts of jobs that are reserved now: free space and set it again")
		}
		return !done, nil
	})
}

// oneLine returns settings as one line, for the audit.
func oneLine(text string) string {
	return strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", " ")
}
