package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/policy"
)

// policiesOf returns the policies in force.
func policiesOf(e *engine.Engine) (*policy.Set, error) {
	if set, ok := e.Policies().(*policy.Set); ok {
		return set, nil
	}
	return nil, problemf(http.StatusServiceUnavailable, "the server stops, and has no policies any more")
}

// inForce returns the policies in force.
func (r *request) inForce() (set *policy.Set, err error) {
	err = r.turn(func(e *engine.Engine, _ int64) (err error) {
		set, err = policiesOf(e)
		return err
	})
	return set, err
}

// sourceOf says where a rule comes from.
func sourceOf(rule *policy.Rule) (source string) {
	switch {
	case rule == nil:
		return "default"
	case rule.Number > 0:
		return "file"
	}
	return "runtime"
}

func policyOf(rule *policy.Rule) admin.Policy {
	return admin.Policy{Pattern: rule.Pattern, Source: sourceOf(rule), Number: int64(rule.Number), Settings: rule.Settings()}
}

func (r *request) listPolicies(*admin.None) (all admin.Policies, err error) {
	set, err := r.inForce()
	if err != nil {
		return all, err
	}
	all.Policies = []admin.Policy{}
	for _, rule := range set.Rules() {
		if r.caller.Identity.Meets(statsNamed, rule.Pattern) {
			all.Policies = append(all.Policies, policyOf(rule))
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
		p.Settings = append(p.Settings, s)
	}
	return p, nil
}

func (r *request) setPolicy(in *admin.SetPolicy) (p admin.Policy, err error) {
	if len(in.Set)+len(in.Unset) == 0 {
		return p, problemf(http.StatusBadRequest, `nothing is set or unset: want {"set": {"max-attempts": "5"}}, or {"unset": ["max-attempts"]}`)
	}
	return r.editPolicy(in.Pattern, func(text string) (string, error) {
		return policy.Edit(text, in.Set, in.Unset, time.Now())
	})
}

func (r *request) deletePolicy(in *admin.OfPolicy) (none admin.None, err error) {
	_, err = r.editPolicy(in.Pattern, func(text string) (string, error) {
		if text == "" {
			return "", problemf(http.StatusNotFound, "nothing is set for %s while the server runs; what the configuration file says is changed there", in.Pattern)
		}
		return "", nil
	})
	return none, err
}

// editPolicy changes what is set for a pattern, which needs the right on all of its tubes.
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
		if o := e.SetPolicy(pattern, text); o == engine.TooBig {
			return problemf(http.StatusInsufficientStorage, "%d patterns have settings already: 'beanpole policy show' lists them, and one * may do for many", engine.MaxPolicies)
		} else if o != engine.OK {
			return outcomeProblem(o)
		}
		set, _ := policiesOf(e)
		p = policyOf(&policy.Rule{Pattern: pattern})
		if rule := set.Runtime(pattern); rule != nil {
			p = policyOf(rule)
			p.Warnings = set.WarningsOf(rule)
		}
		return nil
	})
	return p, err
}

// oneLine returns settings for the audit.
func oneLine(text string) string {
	return strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", " ")
}
