package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

var benchBody = make([]byte, 64)

// mustOK fails the benchmark if the outcome is not OK.
func mustOK(b *testing.B, o Outcome) {
	if o != OK {
		b.Fatalf("outcome %v", o)
	}
}

// BenchmarkWatch reserves from the given number of watched tubes, without a job or
// waiting for a job in a random tube.
func BenchmarkWatch(b *testing.B) {
	for _, tubes := range []int{1, 64, 10_000} {
		for _, timeout := range []int64{0, Forever} {
			b.Run(fmt.Sprintf("timeout=%d/tubes=%d", timeout, tubes), func(b *testing.B) {
				e := New(Options{})
				p, s := e.Open(nil), e.Open(deaf{})
				names := make([][]byte, tubes)
				for k := range names {
					names[k] = fmt.Appendf(nil, "t%d", k)
					e.Watch(s, names[k])
				}
				rng := rand.New(rand.NewPCG(1, 2))
				for b.Loop() {
					if _, o := e.Reserve(0, s, timeout); o == Waiting {
						e.Use(p, names[rng.IntN(tubes)])
						id, _ := e.Put(0, p, Spec{TTR: 60}, benchBody)
						mustOK(b, e.Delete(s, id))
					}
				}
			})
		}
	}
}
