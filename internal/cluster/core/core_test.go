package core

import (
	"flag"
	"fmt"
	"testing"
)

var plantedFlag = flag.Uint64("core.planted", 2000, "in how many seeds a planted mistake must be found")

// Members whose disks, clocks, processes and networks fail lose nothing that was acknowledged, and
// read nothing that is out of date.
func TestSimulation(t *testing.T) {
	first, last := uint64(1), *seedsFlag
	if *seedFlag != 0 {
		first, last = *seedFlag, *seedFlag
	}
	acknowledged, offices := 0, 0
	for seed := first; seed <= last; seed++ {
		w := simulate(t, seed, "")
		acknowledged += w.acknowledged
		offices += len(w.offices)
		if w.wrong != "" {
			t.Fatalf("-core.seed=%d: %s\n%v", seed, w.wrong, w)
		}
	}
	t.Logf("%d seeds: %d commands acknowledged, %d offices", last-first+1, acknowledged, offices)
}

// Each mistake that is planted is found. A simulation that does not find them proves nothing.
func TestPlanted(t *testing.T) {
	for _, p := range []plant{
		"an append before its sync", "cut at the unsynced mark", "the clock is not carried over",
	} {
		t.Run(string(p), func(t *testing.T) {
			for seed := uint64(1); seed <= *plantedFlag; seed++ {
				if found := found(func() string { return simulate(t, seed, p).wrong }); found != "" {
					t.Logf("seed %d: %s", seed, found)
					return
				}
			}
			t.Errorf("not found in %d seeds", *plantedFlag)
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
