package cluster

import (
	"fmt"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// An acknowledged policy for a pattern of tubes is in force on each later leader,
// regardless of the members that are killed.
func TestPoliciesOfLeaders(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		for life := range 4 {
			l := sim.leader()
			settings := fmt.Sprintf("burst=%d\n", life+1)
			sim.must(l.Broker().Call(func(e *engine.Engine, _ int64) {
				if life > 0 && e.SetPolicyOf("mail-*") != fmt.Sprintf("burst=%d\n", life) {
					t.Errorf("leader %d has %q for the pattern", life, e.SetPolicyOf("mail-*"))
				}
				if e.SetPolicyOf("gone") != "" {
					t.Errorf("leader %d has what was unset", life)
				}
				if o := e.SetPolicy("mail-*", settings); o != engine.OK {
					t.Errorf("leader %d: %v", life, o)
				}
				e.SetPolicy("gone", settings)
				e.SetPolicy("gone", "")
			}))
			m := sim.nodeOf(l)
			m.kill(life%2 == 1)
			sim.leader()
			m.boot()
			sim.audit()
		}
	})
}

// If a policy permits a single attempt, no later leader hands out jobs that were reserved
// before, after the change of the policy is settled.
func TestAtMostOnceOfLeaders(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		l := sim.leader()
		held := make(map[uint64]bool)
		sim.must(l.Broker().Call(func(e *engine.Engine, now int64) {
			e.SetPolicies(onceText{})
			s := e.Open(nil)
			for range 5 {
				e.Put(now, s, engine.Spec{TTR: 1000}, nil)
			}
			for range 3 {
				job, _ := e.Reserve(now, s, 0)
				held[job.ID] = true
			}
		}))
		settle := func(b *broker.Broker, begin func(e *engine.Engine)) {
			var settled engine.SettledPolicy
			sim.must(b.Call(func(e *engine.Engine, _ int64) {
				begin(e)
				settled = e.BeginSettled()
			}))
			for done := false; !done; {
				sim.must(b.Call(func(e *engine.Engine, _ int64) { done, _ = e.Settled(&settled) }))
			}
		}
		settle(l.Broker(), func(e *engine.Engine) { e.SetPolicy("*", "once") })
		m := sim.nodeOf(l)
		m.kill(true)
		next := sim.leader()
		settle(next.Broker(), func(e *engine.Engine) { e.SetPolicies(onceText{}) })
		served := 0
		sim.must(next.Broker().Call(func(e *engine.Engine, now int64) {
			s := e.Open(nil)
			for job, o := e.Reserve(now, s, 0); o == engine.OK; job, o = e.Reserve(now, s, 0) {
				if served++; held[job.ID] {
					t.Errorf("job %d is served by a second leader", job.ID)
				}
			}
			for id := range e.LastID() { // the audit expects only its own jobs
				e.Delete(s, id+1)
			}
		}))
		if served != 2 {
			t.Errorf("%d jobs are served, want the 2 that no worker had", served)
		}
		m.boot()
	})
}

// onceText implements policies that permit one attempt in all tubes if the text for all
// tubes is "once".
type onceText map[string]string

// Of implements engine.Policies.
func (p onceText) Of(string) *engine.Policy {
	if p["*"] == "once" {
		return &engine.Policy{MaxAttempts: 1}
	}
	return nil
}

// With implements engine.Policies.
func (p onceText) With(pattern, text string) engine.Policies { return onceText{pattern: text} }
