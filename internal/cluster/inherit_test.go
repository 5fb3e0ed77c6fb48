package cluster

import (
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// What was set on an engine while it ran outlives a deposition, also one after which the
// engine is made again.
func TestSettingsOutliveDeposition(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		l := sim.leader()
		l.Broker().Configure(func(e *engine.Engine) { e.SetLimits(engine.Limits{Memory: 1 << 20}) })
		sim.part(sim.nodeOf(l))
		if _, err := sim.put(l, "mail", engine.Spec{TTR: 60}, "not acknowledged"); err == nil {
			t.Fatal("a put without a majority was acknowledged")
		}
		l.Broker().Configure((*engine.Engine).Drain) // also when the epoch has just ended
		sim.heal()
		time.Sleep(time.Second)
		if sim.logged("read from the journal again") == 0 {
			t.Error("the engine was not made again")
		}
		l.Broker().View(func(e *engine.Engine, _ int64) {
			if _, limit := e.LimitedMemory(); limit != 1<<20 || !e.IsDraining() {
				t.Errorf("the limit of memory is %d, it drains: %v", limit, e.IsDraining())
			}
		})
	})
}
