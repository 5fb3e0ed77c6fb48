package core

import (
	"fmt"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// Members whose disks, clocks, processes and networks fail lose nothing that was acknowledged, and
// read nothing that is out of date.
func TestSimulation(t *testing.T) {
	acknowledged, epochs, installed := 0, 0, 0
	seeds.Each(t, 10, func(t *testing.T, seed uint64) {
		w := simulate(t, seed, "")
		acknowledged += w.acknowledged
		epochs += len(w.epochs)
		installed += w.installed
		if w.wrong != "" {
			t.Fatalf("%s\n%v", w.wrong, w)
		}
	})
	t.Logf("%d commands acknowledged, %d epochs, %d snapshots installed", acknowledged, epochs, installed)
}

// Each mistake that is planted is found. A simulation that does not find them proves nothing.
func TestPlanted(t *testing.T) {
	for p, seed := range map[plant]uint64{
		"an append before its sync": 2947118857, "cut at the unsynced mark": 1, "the clock is not carried over": 1,
	} {
		t.Run(string(p), func(t *testing.T) {
			seeds.Find(t, seed, func(t *testing.T, seed uint64) string {
				return found(func() string { return simulate(t, seed, p).wrong })
			})
		})
	}
}

// found returns what a run with a mistake shows; a panic of Raft is a find, too.
func found(run func() string) (wrong string) {
	defer func() {
		if r := recover(); r != nil {
			wrong = fmt.Sprint("panic: ", r)
		}
	}()
	return run()
}
