package engine

import (
	"fmt"
	"testing"
)

// A survey in slices reports each tube once, while other tubes are created and removed.
// Its values equal those of TubeStats.
func TestSurveyTubes(t *testing.T) {
	e := New(Options{})
	for i := range 100 {
		e.PutInto(1, fmt.Appendf(nil, "tube-%d", i), Spec{TTR: 9}, nil)
	}
	seen := make(map[string]int)
	next, turns := 0, 0
	for turns == 0 || next > 0 {
		turns++
		next = e.SurveyTubes(2, next, 7, func(name string, st TubeStats) {
			seen[name]++
			if want, _ := e.TubeStats(2, []byte(name)); st != want {
				t.Errorf("%s: %+v, want %+v", name, st, want)
			}
		})
		e.PutInto(2, fmt.Appendf(nil, "late-%d", turns), Spec{TTR: 9}, nil)
		e.DeleteJob(uint64(90 + turns%3)) // removes the job's tube
	}
	for i := range 89 {
		if name := fmt.Sprintf("tube-%d", i); seen[name] != 1 {
			t.Errorf("%s was reported %d times", name, seen[name])
		}
	}
	for name, n := range seen {
		if n > 1 {
			t.Errorf("%s was reported %d times", name, n)
		}
	}
	if seen[DefaultTube] != 1 || turns < 101/7 {
		t.Errorf("the default tube was reported %d times, in %d turns", seen[DefaultTube], turns)
	}

	// A turn that has done enough work still reports one tube.
	e.workLimit = 0
	n := 0
	if e.SurveyTubes(3, 0, 50, func(string, TubeStats) { n++ }); n != 1 {
		t.Errorf("a spent turn reported %d tubes", n)
	}
}

func BenchmarkSurveyTubes(b *testing.B) {
	e := New(Options{})
	for i := range 1000 {
		e.PutInto(1, fmt.Appendf(nil, "tube-%d", i), Spec{TTR: 9}, nil)
	}
	for b.Loop() {
		e.turnWork = 0
		e.SurveyTubes(2, 0, 1000, func(string, TubeStats) {})
	}
}
