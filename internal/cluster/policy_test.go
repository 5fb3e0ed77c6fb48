package cluster

import (
	"fmt"
	"testing"

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
					t.Errorf("leader %d has settings that were unset", life)
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
