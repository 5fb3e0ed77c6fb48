package cluster

import (
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// The limits of an engine survive a deposition, even if the engine is replaced. Draining
// ends with the leadership, and a member that is not the leader cannot start it.
func TestSettingsOutliveDeposition(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		l := sim.leader()
		b := l.Broker()
		b.Configure(func(e *engine.Engine) { e.SetLimits(engine.Limits{Memory: 1 << 20}) })
		sim.part(sim.nodeOf(l))
		refused := make(chan error)
		go func() {
			_, err := sim.put(l, "mail", engine.Spec{TTR: 60}, "not acknowledged")
			refused <- err
		}()
		time.Sleep(10 * time.Millisecond)
		if !b.Decide((*engine.Engine).Drain) {
			t.Error("the leader is not draining")
		}
		if <-refused == nil {
			t.Fatal("a put without a majority was acknowledged")
		}
		sim.heal()
		time.Sleep(time.Second)
		if sim.logged("read from the journal again") == 0 {
			t.Error("the engine was not made again")
		}
		if sim.leader() != l && b.Decide((*engine.Engine).Drain) {
			t.Error("a follower drains")
		}
		b.View(func(e *engine.Engine, _ int64) {
			if _, limit := e.LimitedMemory(); limit != 1<<20 || e.IsDraining() {
				t.Errorf("the limit of memory is %d, it drains: %v", limit, e.IsDraining())
			}
		})
	})
}
