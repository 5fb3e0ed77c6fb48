package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

var benchBody = make([]byte, 64)

// mustOK fails a benchmark whose operation fails.
func mustOK(b *testing.B, o Outcome) {
	if o != OK {
		b.Fatalf("outcome %v", o)
	}
}

// putReserveDelete is the life of a job, once.
func putReserveDelete(b *testing.B, e *Engine, now int64, s *Session) {
	e.Put(now, s, Spec{TTR: 60}, benchBody)
	j, o := e.Reserve(now, s, 0)
	mustOK(b, o)
	mustOK(b, e.Delete(s, j.ID))
}

// BenchmarkPutReserveDelete puts at the end of a queue and takes at its head.
func BenchmarkPutReserveDelete(b *testing.B) {
	for _, backlog := range []int{0, 1000, 1000000} {
		b.Run(fmt.Sprintf("backlog=%d", backlog), func(b *testing.B) {
			e := New(Options{})
			s := e.Open(nil)
			for range backlog {
				e.Put(0, s, Spec{TTR: 60}, benchBody)
			}
			b.ReportAllocs()
			now := int64(0)
			for b.Loop() {
				now += 1000
				putReserveDelete(b, e, now, s)
			}
		})
	}
	// Other tubes, each with a job, must have no effect.
	b.Run("tubes=100000", func(b *testing.B) {
		e := New(Options{})
		s := e.Open(nil)
		for k := range 100000 {
			e.Use(s, fmt.Appendf(nil, "t%d", k))
			e.Put(0, s, Spec{TTR: 60}, benchBody)
		}
		e.Use(s, []byte(DefaultTube))
		b.ReportAllocs()
		for b.Loop() {
			putReserveDelete(b, e, 0, s)
		}
	})
	// Nor are jobs that are not due yet.
	b.Run("delayed=1000000", func(b *testing.B) {
		e := New(Options{})
		s := e.Open(nil)
		for k := range uint32(1000000) {
			e.Put(0, s, Spec{Delay: 1000 + k%1000, TTR: 60}, benchBody)
		}
		b.ReportAllocs()
		for b.Loop() {
			putReserveDelete(b, e, 0, s)
			e.Tick(0)
		}
	})
	// The changes that a log would receive.
	b.Run("logged", func(b *testing.B) {
		e := New(Options{Logged: true})
		s := e.Open(nil)
		b.ReportAllocs()
		for b.Loop() {
			putReserveDelete(b, e, 0, s)
			e.RecycleChanges(e.TakeChanges())
		}
	})
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
