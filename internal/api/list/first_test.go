package list

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// First keeps the first N items in order; of equal items, it keeps the earliest. It
// stores at most 2N items.
func TestFirst(t *testing.T) {
	type thing struct{ key, came int }
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		first := First[thing]{N: 1 + rnd.IntN(10), Compare: func(a, b thing) int { return cmp.Compare(a.key, b.key) }}
		var all []thing
		for came := range rnd.IntN(100) {
			x := thing{rnd.IntN(20), came}
			all = append(all, x)
			first.Show(x)
			if len(first.kept) >= 2*first.N {
				t.Fatalf("%d are kept for %d", len(first.kept), first.N)
			}
		}
		slices.SortStableFunc(all, first.Compare)
		if got, want := first.Sorted(), all[:min(first.N, len(all))]; !slices.Equal(got, want) {
			t.Fatalf("%v, want %v of %v", got, want, all)
		}
	}
}
