// Package seeds provides the seeds of random tests, and their durations.
//
// A test that draws its input runs with a few new seeds, so that every commit tries new
// inputs, and with each seed that has failed before. A test that counts rounds runs a few
// rounds. All such test programs have the same flags:
//
//	go test ./internal/test/sim -run TestPower                the usual number of new seeds
//	go test ./internal/test/sim -run TestPower -seeds=5000    5000 new seeds
//	go test ./internal/test/sim -run TestPower -for=10m       new seeds for 10 minutes
//	go test ./internal/test/sim -run TestPower -seed=1234     a single seed, for example to repeat a failure
//
// [Each] runs a test with many seeds, [One] provides the seed of a test with a single
// seed, [Rounds] counts the rounds of such a test, [Step] selects places to visit, and
// [Find] finds planted faults.
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
	only  = flag.Uint64("seed", 0, "the only `seed` of a random test (default new seeds, and seeds that have failed before)")
	count = flag.Int("seeds", 0, "number of `seeds` or rounds of a random test (default depends on the test)")
	limit = flag.Duration("for", 0, "`duration` of a random test (default counts seeds or rounds)")
)

// Each runs a subtest for each seed that failed before, and then for usual new seeds,
// until a subtest fails. Flags can change the number of new seeds, or select a single
// seed. Each returns the number of seeds.
//
// Under the race detector, which slows simulations about tenfold, it runs a tenth of the
// usual seeds.
func Each(t *testing.T, usual int, f func(t *testing.T, seed uint64), failed ...uint64) (ran int) {
	t.Helper()
	for seed := range all(usual, failed) {
		ran++
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { f(t, seed) }) {
			again(t, seed)
			t.FailNow()
		}
	}
	t.Logf("seeds: %d", ran) // make night adds these numbers up
	return ran
}

// Enough reports whether a test has had the usual number of seeds. If so, every event
// that the test counts must have occurred.
func Enough(ran, usual int) bool { return *only == 0 && ran >= usual }

// all returns the seeds of a test.
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

// Rounds counts the rounds of a test until it fails: usual rounds, or the number that the
// flags specify.
func Rounds(t testing.TB, usual int) iter.Seq[int] {
	return func(yield func(int) bool) {
		ran := 0
		defer func() { t.Logf("rounds: %d", ran) }() // make night adds these numbers up
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

// Long reports whether a flag requests more than the usual number of seeds, or a single
// seed.
func Long() bool { return *only != 0 || *count > 0 || *limit > 0 }

// Step selects the places that a test visits, such as the operations before which the
// power fails: every step-th place, starting with first. Normally, step is usual and
// first is random. If a flag requests more, the test visits all places.
func Step(usual int) (first, step int) {
	if Long() {
		return 1, 1
	}
	return 1 + rand.IntN(usual), usual
}

// One returns the seed of a test with a single seed. If the test fails, it logs the
// command that repeats the test.
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
	t.Logf("to repeat: -run '^%s$' -seed=%d", t.Name(), seed)
}

// draw returns a new seed. It is not 0, and short enough to be typed.
func draw() uint64 { return uint64(rand.Uint32()) + 1 }

// Find searches for a planted fault in the code under test. f returns the symptom that a
// seed produces, or "". Find first tries the known seed. If that seed no longer produces
// a symptom, or if -seeds or -for is given, it tries up to 2,000 new seeds. If no seed
// produces a symptom, the test fails, because its checks would prove nothing.
func Find(t *testing.T, known uint64, f func(t *testing.T, seed uint64) string) {
	t.Helper()
	seed, more := known, *count > 0 || *limit > 0
	if more {
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
