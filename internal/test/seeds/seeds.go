// Package seeds gives random tests their seeds, and says how long they go on.
//
// A test that draws its input runs with a few seeds that are new each time, so that every
// commit tries what nobody has tried before, and with each seed that once failed. A test
// that counts rounds has a few. The same flags of any such test program ask for more:
//
//	go test ./internal/test/sim -run TestPower                the usual number of new seeds
//	go test ./internal/test/sim -run TestPower -seeds=5000    so many
//	go test ./internal/test/sim -run TestPower -for=10m       as many as that time allows
//	go test ./internal/test/sim -run TestPower -seed=1234     one, such as one that failed
//
// [Each] runs a test with many seeds, [One] gives a test its only seed, [Rounds] counts the
// rounds of a test with one seed, [Step] goes through places, and [Find] looks for a mistake that is planted.
package seeds

import (
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"
	"time"
)

var (
	only  = flag.Uint64("seed", 0, "the only `seed` of a random test; 0: new ones, and those that once failed")
	count = flag.Int("seeds", 0, "how many `seeds`, or rounds, a random test has; 0: as many as it usually has")
	limit = flag.Duration("for", 0, "how `long` a random test goes on; 0: it counts its seeds or rounds")
)

// Each runs a subtest for each seed that failed before, then for usual new ones, until one
// fails. Flags ask for more, or for one alone. It returns how many seeds there were.
//
// Under the race detector, which makes simulations some ten times slower, a tenth of the
// usual seeds must do.
func Each(t *testing.T, usual int, f func(t *testing.T, seed uint64), failed ...uint64) (ran int) {
	t.Helper()
	for seed := range all(usual, failed) {
		ran++
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { f(t, seed) }) {
			again(t, seed)
			t.FailNow()
		}
	}
	t.Logf("seeds: %d", ran) // make night adds these up
	return ran
}

// Enough reports whether a test has had as many seeds as usual, so that it must have met
// whatever it counts.
func Enough(ran, usual int) bool { return *only == 0 && ran >= usual }

// all are the seeds of a test.
func all(usual int, failed []uint64) iter.Seq[uint64] {
	if Race {
		usual = (usual + 9) / 10
	}
	return func(yield func(uint64) bool) {
		if *only != 0 {
			yield(*only)
			return
		}
		for _, seed := range failed {
			if !yield(seed) {
				return
			}
		}
		for range rounds(usual) {
			if !yield(draw()) {
				return
			}
		}
	}
}

// Rounds counts the rounds of a test until it fails: usual ones, or as many as the flags say.
func Rounds(t testing.TB, usual int) iter.Seq[int] {
	return func(yield func(int) bool) {
		ran := 0
		defer func() { t.Logf("rounds: %d", ran) }() // make night adds these up
		for n := range rounds(usual) {
			ran++
			if t.Failed() || !yield(n) {
				return
			}
		}
	}
}

func rounds(usual int) iter.Seq[int] {
	if *count > 0 {
		usual = *count
	}
	return func(yield func(int) bool) {
		began := time.Now()
		for n := 0; n == 0 || *limit == 0 && n < usual || time.Since(began) < *limit; n++ {
			if !yield(n) {
				return
			}
		}
	}
}

// Long reports whether a flag asks for more than the usual, or for one seed again.
func Long() bool { return *only != 0 || *count > 0 || *limit > 0 }

// Step says how a test goes through all places at which something can happen, such as a
// power cut: from first on, each step-th. That is usually each usual-th, beginning
// anywhere, and all of them if a flag asks for more.
func Step(usual int) (first, step int) {
	if Long() {
		return 1, 1
	}
	return 1 + rand.IntN(usual), usual
}

// Time is how long a test goes on that usually does for some time.
func Time(usual time.Duration) time.Duration {
	if *limit > 0 {
		return *limit
	}
	return usual
}

// One returns the seed of a test that has one. If the test fails, it says how to repeat it.
func One(t testing.TB) uint64 {
	seed := *only
	if seed == 0 {
		seed = draw()
	}
	t.Cleanup(func() {
		if t.Failed() {
			again(t, seed)
		}
	})
	return seed
}

func again(t testing.TB, seed uint64) {
	t.Helper()
	t.Logf("again with: -run '^%s$' -seed=%d", t.Name(), seed)
}

// draw returns a new seed: not 0, and short enough to be copied by hand.
func draw() uint64 { return uint64(rand.Uint32()) + 1 }

// Find looks for a mistake that is planted in the code under test: f returns what a seed
// shows of it, or "". The seed that is known to show it comes first. With -seeds or -for,
// or if the code has changed so much that the known seed does not show it any more, new
// ones follow, 2,000 at most. A test that does not find a planted mistake proves nothing,
// so it fails.
func Find(t *testing.T, known uint64, f func(t *testing.T, seed uint64) string) {
	t.Helper()
	seed, anew := known, *count > 0 || *limit > 0
	if anew {
		seed = draw()
	}
	if *only != 0 {
		seed = *only
	}
	for n := 1; n <= 2000; n++ {
		if what := f(t, seed); what != "" {
			t.Logf("found with %d. seed, %d: %.300s", n, seed, what)
			return
		}
		if *only != 0 {
			break
		}
		seed = draw()
	}
	t.Error("no seed shows the mistake")
}
