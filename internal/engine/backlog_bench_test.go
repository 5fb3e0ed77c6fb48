package engine

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// backlogs are the numbers of jobs in the queue in addition to the measured job.
var backlogs = []int{0, 1_000_000, 10_000_000}

// BenchmarkBacklog puts, reserves and deletes a job in a queue of many jobs with
// different orders of priorities. It reports the ratio to an empty queue.
func BenchmarkBacklog(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	falling := uint32(1<<32 - 1)
	for _, order := range []struct {
		name         string
		behind, next func() uint32 // priorities
	}{
		{"one priority", func() uint32 { return 1024 }, func() uint32 { return 1024 }},
		{"urgent job", func() uint32 { return 1024 }, func() uint32 { return 0 }},
		{"eight priorities", func() uint32 { return rng.Uint32N(8) }, func() uint32 { return rng.Uint32N(8) }},
		{"random priorities", rng.Uint32, rng.Uint32},
		{"falling priorities", func() uint32 { falling--; return falling }, func() uint32 { falling--; return falling }},
	} {
		empty := 0.0 // ns
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

// BenchmarkFill puts a million jobs, and then starts again.
func BenchmarkFill(b *testing.B) {
	const most = 1_000_000
	rng := rand.New(rand.NewPCG(1, 2))
	for _, order := range []struct {
		name string
		spec func(k int) Spec
	}{
		{"one priority", func(int) Spec { return Spec{TTR: 60} }},
		{"as many priorities", func(int) Spec { return Spec{Pri: rng.Uint32(), TTR: 60} }},
		{"one delay", func(int) Spec { return Spec{Delay: 9, TTR: 60} }},
		{"falling delays", func(k int) Spec { return Spec{Delay: most - uint32(k), TTR: 60} }},
	} {
		b.Run(order.name, func(b *testing.B) {
			e, k := New(Options{}), most
			var s *Session
			for b.Loop() {
				if k == most {
					b.StopTimer()
					e, k = New(Options{}), 0
					s = e.Open(nil)
					runtime.GC()
					b.StartTimer()
				}
				e.Put(int64(k), s, order.spec(k), benchBody)
				k++
			}
		})
	}
}

// BenchmarkMiddle removes jobs from the middle of the queue, and puts others at the end.
func BenchmarkMiddle(b *testing.B) {
	for _, verb := range []string{"delete", "reserve-job"} {
		for _, backlog := range backlogs[1:] {
			b.Run(fmt.Sprintf("%s/of=%d", verb, backlog), func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 2))
				e := New(Options{})
				s := e.Open(nil)
				ids := make([]uint64, backlog)
				for k := range ids {
					ids[k], _ = e.Put(0, s, Spec{TTR: 60}, benchBody)
				}
				runtime.GC()
				b.ReportAllocs()
				for b.Loop() {
					id := &ids[rng.IntN(len(ids))]
					if verb == "reserve-job" {
						_, o := e.ReserveJob(0, s, *id)
						mustOK(b, o)
					}
					mustOK(b, e.Delete(s, *id))
					*id, _ = e.Put(0, s, Spec{TTR: 60}, benchBody)
				}
			})
		}
	}
}

// BenchmarkEverySecond deletes every second of a million jobs, and then reserves and
// deletes the others.
func BenchmarkEverySecond(b *testing.B) {
	const most = 1_000_000
	for b.Loop() {
		b.StopTimer()
		e := New(Options{})
		s := e.Open(nil)
		for range most {
			e.Put(0, s, Spec{TTR: 60}, benchBody)
		}
		runtime.GC()
		b.StartTimer()
		for id := uint64(1); id <= most; id += 2 {
			mustOK(b, e.Delete(s, id))
		}
		for range most / 2 {
			j, o := e.Reserve(0, s, 0)
			mustOK(b, o)
			mustOK(b, e.Delete(s, j.ID))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/most, "ns/job")
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

// BenchmarkDrain reserves and deletes ten million jobs in turns of a hundred. It reports
// the longest turn and the remaining heap.
func BenchmarkDrain(b *testing.B) {
	const jobs, perTurn = 10_000_000, 100
	for b.Loop() {
		b.StopTimer()
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		before := m.HeapInuse
		e := New(Options{})
		s := e.Open(nil)
		for range jobs {
			e.Put(0, s, Spec{TTR: 60}, benchBody)
		}
		longest := time.Duration(0)
		b.StartTimer()
		for range jobs / perTurn {
			begin := time.Now()
			e.Tick(0)
			for range perTurn {
				j, o := e.Reserve(0, s, 0)
				mustOK(b, o)
				mustOK(b, e.Delete(s, j.ID))
			}
			longest = max(longest, time.Since(begin))
		}
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(longest.Nanoseconds())/1e6, "longest-ms")
		b.ReportMetric((float64(m.HeapInuse)-float64(before))/1e6, "kept-MB")
		runtime.KeepAlive(e)
		b.StartTimer()
	}
}
