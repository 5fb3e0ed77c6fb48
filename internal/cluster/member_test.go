package cluster

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A cluster of one serves, and serves again after it was killed.
func TestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		m := w.machines[0]
		for life := range 4 {
			for i := range 20 {
				if _, err := w.put(w.leader(), "mail", engine.Spec{TTR: 60, Delay: uint32(i % 3)}, fmt.Sprint("job", life, i)); err != nil {
					w.fatalf("%v", err)
				}
				if i%4 == 0 {
					w.must(w.delete(w.leader()))
				}
			}
			w.audit()
			m.kill(life%2 == 1)
			m.boot()
			w.leader()
			w.audit()
		}
		w.close()
	})
}

// load puts and deletes at whoever leads until the world is told to stop.
func (w *world) load(clients int) (stop func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	for k := range clients {
		rng := rand.New(rand.NewPCG(uint64(k), 5))
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				case <-time.After(time.Duration(1+rng.IntN(20)) * time.Millisecond):
				}
				m := w.whoLeads()
				switch {
				case m == nil:
				case rng.IntN(3) == 0:
					w.delete(m)
				default:
					w.put(m, fmt.Sprint("tube", rng.IntN(3)), engine.Spec{TTR: 60, Delay: uint32(rng.IntN(3))}, fmt.Sprint("job", k, n))
				}
			}
		})
	}
	return func() { close(done); all.Wait() }
}

// whoLeads returns a member that says so, or nil.
func (w *world) whoLeads() *Member {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.rng.Perm(len(w.machines)) {
		if m := w.machines[k].member; m != nil && m.Lead().Office != 0 {
			return m
		}
	}
	return nil
}

// Nothing that was acknowledged is lost when members are killed, lose their power, or are cut off.
func TestThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 3)
		stop := w.load(5)
		for round := range 12 {
			time.Sleep(time.Second)
			m := w.machineOf(w.leader())
			if round%4 == 3 { // a follower
				m = w.machines[m.id%3]
			}
			switch round % 3 {
			case 0, 1:
				m.kill(round%3 == 1)
				time.Sleep(2 * time.Second)
				m.boot()
			case 2:
				w.part(m)
				time.Sleep(3 * time.Second)
				w.heal()
			}
		}
		time.Sleep(3 * time.Second)
		stop()
		w.audit()
		t.Logf("%d puts and %d deletes were acknowledged", len(w.ledger.puts), len(w.ledger.deletes))
		w.close()
	})
}
