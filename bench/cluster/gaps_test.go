package main

import (
	"strings"
	"testing"
	"time"
)

// A client that turns away never goes to the member that goes.
func TestTurnAway(t *testing.T) {
	for victim := range members {
		s := seeker{victim: victim, next: victim}
		seen := map[int]bool{}
		for range 2 * members {
			s.turnAway()
			seen[s.next] = true
		}
		if seen[victim] || len(seen) != members-1 {
			t.Errorf("the victim is %d, and the client goes to %v", victim, seen)
		}
	}
}

func TestGapRow(t *testing.T) {
	var out strings.Builder
	l := loss{name: "gone", follower: true, aim: time.Second}
	l.print(&out, []float64{3e6, 1e6, 2e6})
	if want := "| gone | a follower | 2.00 ms | 1.00 ms | 3.00 ms | 1.00 s |\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// The ratio is that of what the jobs have added in the same round.
func TestMemoryTable(t *testing.T) {
	opt := options{jobs: 1024, body: 64}
	const kib = 1 << 10
	var out strings.Builder
	opt.printMemory(&out, [][]holding{
		{{10 * kib, 20 * kib}, {10 * kib, 30 * kib}},
		{{10 * kib, 30 * kib}, {10 * kib, 50 * kib}},
		{{20 * kib, 50 * kib}, {20 * kib, 60 * kib}},
	})
	for _, want := range []string{
		"with 1024 jobs of 64 bytes and a journal, medians of 2 rounds",
		"| single server | 10.0 KiB | 25.0 KiB | 15 bytes | 1.00 (1.00..1.00) |\n",
		"| leader of three | 10.0 KiB | 40.0 KiB | 30 bytes | 2.00 (2.00..2.00) |\n",
		"| follower | 20.0 KiB | 55.0 KiB | 35 bytes | 2.50 (2.00..3.00) |\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}
