package engine

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

// backlogs are the numbers of jobs in the queue in addition to the measured job.
var backlogs = []int{0, 1_000_000, 10_000_000}

// BenchmarkBacklog puts, reserves and deletes a job in a queue with many jobs, for
// several orders of priorities. It reports the ratio to an empty queue.
func BenchmarkBacklog(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	falling := uint32(1<<32 - 1)
	for _, order := range []struct {
		name         string
		behind, next func() uint32 // functions that return priorities
	}{
		{"one priority", func() uint32 { return 1024 }, func() uint32 { return 1024 }},
		{"urgent job", func() uint32 { return 1024 }, func() uint32 { return 0 }},
		{"eight priorities", func() uint32 { return rng.Uint32N(8) }, func() uint32 { return rng.Uint32N(8) }},
		{"random priorities", rng.Uint32, rng.Uint32},
		{"falling priorities", func() uint32 { falling--; return falling }, func() uint32 { falling--; return falling }},
	} {
		empty := 0.0 // ns per job in an empty queue
		for _, backlog := range backlogs {
			b.Run(fmt.Sprintf("%s/behind=%d", order.name, backlog), func(b *testing.B) {
				e := New(Options{})
				s := e.Open(nil)
				for range backlog {
					e.Put(0, s, Spec{Pri: order.behind(), TTR: 60}, benchBody)
				}
				runtime.GC()
				b.ReportAllocs()
				now := int64(0)
				for b.Loop() {
					now += 1000
					e.Put(now, s, Spec{Pri: order.next(), TTR: 60}, benchBody)
					j, o := e.Reserve(now, s, 0)
					mustOK(b, o)
					mustOK(b, e.Delete(s, j.ID))
				}
				took := float64(b.Elapsed()) / float64(b.N)
				if backlog == 0 {
					empty = took
				} else if empty > 0 {
					b.ReportMetric(took/empty, "times-empty")
				}
			})
		}
	}
}

// BenchmarkMemory reports the heap bytes of a job with a 64-byte body.
func BenchmarkMemory(b *testing.B) {
	const jobs = 2_000_000
	var ids [jobs]uint64
	rng := rand.New(rand.NewPCG(1, 2))
	for _, kind := range []string{"ready", "delayed", "buried", "ready at random priorities", "reserved"} {
		b.Run(kind, func(b *testing.B) {
			var m runtime.MemStats
			used := func() uint64 {
				runtime.GC()
				runtime.ReadMemStats(&m)
				return m.HeapInuse
			}
			for b.Loop() {
				before := used()
				e := New(Options{})
				s := e.Open(nil)
				for k := range ids {
					spec := Spec{TTR: 60}
					switch kind {
					case "delayed":
						spec.Delay = 9
					case "ready at random priorities":
						spec.Pri = rng.Uint32()
					}
					ids[k], _ = e.Put(int64(k), s, spec, benchBody)
					switch kind {
					case "buried":
						e.BuryJob(ids[k], 0)
					case "reserved":
						e.Reserve(int64(k), s, 0)
					}
				}
				b.ReportMetric(float64(used()-before)/jobs, "B/job")
				runtime.KeepAlive(e)
			}
		})
	}
}
