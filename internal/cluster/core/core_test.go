package core

import (
	"fmt"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// Despite failing disks, clocks, processes and networks, the members lose no acknowledged
// change, and no read is outdated.
func TestSimulation(t *testing.T) {
	acknowledged, epochs, installed := 0, 0, 0
	seeds.Each(t, 10, func(t *testing.T, seed uint64) {
		sim := simulate(t, seed, "")
		acknowledged += sim.acknowledged
		epochs += len(sim.epochs)
		installed += sim.installed
		if sim.wrong != "" {
			t.Fatalf("%s\n%v", sim.wrong, sim)
		}
	})
	t.Logf("%d commands acknowledged, %d epochs, %d snapshots installed", acknowledged, epochs, installed)
}

// The simulation detects each planted fault. Otherwise, its successful runs would prove
// nothing.
func TestPlanted(t *testing.T) {
	for p, seed := range map[fault]uint64{
		"an append before its sync": 285157239, "cut at the unsynced mark": 1, "the clock is not carried over": 1,
		unwanted: 3796035331, earlyDone: 3933939305, notHeld: 2487388284, lostOffer: 3038343777,
	} {
		t.Run(string(p), func(t *testing.T) {
			seeds.Find(t, seed, func(t *testing.T, seed uint64) string {
				return found(func() string { return simulate(t, seed, p).wrong })
			})
		})
	}
}

// found returns the effect of a planted fault in a run. A panic of Raft counts.
func found(run func() string) (wrong string) {
	defer func() {
		if r := recover(); r != nil {
			wrong = fmt.Sprint("panic: ", r)
		}
	}()
	return run()
}
