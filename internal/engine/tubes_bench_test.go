package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// manyTubes returns a session that watches so many tubes, and default.
func manyTubes(e *Engine, tubes int) *Session {
	s := e.Open(nil)
	for k := range tubes {
		e.Watch(s, fmt.Appendf(nil, "tube-%08d", k))
	}
	return s
}

var benchSizes = []int{1, 100000, 1000000}

// BenchmarkTubeNames is what list-tubes costs within a turn. "again" has no
// change since the last one; "changed" makes and removes a tube in between.
func BenchmarkTubeNames(b *testing.B) {
	for _, tubes := range benchSizes {
		e := New(Options{})
		s := manyTubes(e, tubes)
		b.Run(fmt.Sprintf("again/tubes=%d", tubes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if names := e.TubeNames(); names.Len() != tubes+1 {
					b.Fatal(names.Len())
				}
			}
		})
		b.Run(fmt.Sprintf("changed/tubes=%d", tubes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.TubeNames()
				e.Use(s, []byte("another"))
				e.Use(s, []byte(DefaultTube))
			}
		})
	}
}

// BenchmarkWatchedNames is what list-tubes-watched costs within a turn.
func BenchmarkWatchedNames(b *testing.B) {
	for _, tubes := range benchSizes {
		b.Run(fmt.Sprintf("tubes=%d", tubes), func(b *testing.B) {
			s := manyTubes(New(Options{}), tubes)
			b.ReportAllocs()
			for b.Loop() {
				if names := s.WatchedNames(); names.Len() != tubes+1 {
					b.Fatal(names.Len())
				}
			}
		})
	}
}

// BenchmarkTubeComesAndGoes makes a tube and removes it. With a snapshot taken
// before, so that pages are shared, one time in so many.
func BenchmarkTubeComesAndGoes(b *testing.B) {
	for _, every := range []int{0, 1000, 1} {
		b.Run(fmt.Sprintf("snapshot-every=%d", every), func(b *testing.B) {
			e := New(Options{})
			s := manyTubes(e, 100000)
			names := make([][]byte, 1000)
			for k := range names {
				names[k] = fmt.Appendf(nil, "another-%d", k)
			}
			b.ReportAllocs()
			k := 0
			for b.Loop() {
				if k++; every > 0 && k%every == 0 {
					e.TubeNames()
				}
				e.Use(s, names[k%len(names)]) // makes it, and removes the one before
			}
		})
	}
}

// BenchmarkStats is what stats costs, however many tubes there are.
func BenchmarkStats(b *testing.B) {
	for _, tubes := range benchSizes {
		b.Run(fmt.Sprintf("tubes=%d", tubes), func(b *testing.B) {
			e := New(Options{})
			manyTubes(e, tubes)
			b.ReportAllocs()
			for b.Loop() {
				if st := e.Stats(); st.Tubes != uint64(tubes+1) {
					b.Fatal(st.Tubes)
				}
			}
		})
	}
}

// buryAll returns an engine with so many buried jobs.
func buryAll(jobs int) (*Engine, *Session) {
	e := New(Options{})
	s := e.Open(nil)
	for range jobs {
		id, _ := e.Put(0, s, Spec{TTR: 60}, benchBody)
		e.ReserveJob(0, s, id)
		e.Bury(s, id, 0)
	}
	return e, s
}

// BenchmarkKick is one slice of a kick of a million jobs: how long a turn takes.
func BenchmarkKick(b *testing.B) {
	const jobs = 1000000
	var e *Engine
	var k Kick
	for b.Loop() {
		if k.tube == nil || !e.ContinueKick(0, &k) { // then what was kicked is buried again
			b.StopTimer()
			var s *Session
			e, s = buryAll(jobs)
			k = e.BeginKick(s, jobs)
			b.StartTimer()
		}
	}
}

// BenchmarkClose is one slice of closing a session that holds a million jobs.
func BenchmarkClose(b *testing.B) {
	const jobs = 1000000
	e := New(Options{})
	s := e.Open(nil)
	for range jobs {
		e.Put(0, s, Spec{TTR: 60}, benchBody)
	}
	for b.Loop() {
		if e.Tick(0); e.Stats().Reserved == 0 {
			b.StopTimer()
			s = e.Open(nil)
			for range jobs {
				e.Reserve(0, s, 0)
			}
			e.Close(0, s)
			b.StartTimer()
		}
	}
}

// BenchmarkReserveOfMany is a reserve of a session that watches so many tubes:
// "nothing" finds no job, "each" finds one in each of them, "waits" is given one.
func BenchmarkReserveOfMany(b *testing.B) {
	for _, tubes := range []int{4, maxUnindexed - 1, 1000, 100000, 1000000} {
		open := func(jobs bool) (e *Engine, p, s *Session) {
			e = New(Options{})
			p = e.Open(nil)
			s = e.Open(deaf{})
			for k := range tubes {
				name := fmt.Appendf(nil, "tube-%08d", k)
				e.Watch(s, name)
				if e.Use(p, name); jobs {
					e.Put(0, p, Spec{TTR: 60}, benchBody)
				}
			}
			e.Reserve(0, s, 0)
			for e.Next() <= 0 {
				e.Tick(0)
			}
			return e, p, s
		}
		b.Run(fmt.Sprintf("nothing/tubes=%d", tubes), func(b *testing.B) {
			e, _, s := open(false)
			b.ReportAllocs()
			for b.Loop() {
				e.Tick(0)
				if _, o := e.Reserve(0, s, 0); o != TimedOut {
					b.Fatal(o)
				}
			}
		})
		b.Run(fmt.Sprintf("each/tubes=%d", tubes), func(b *testing.B) {
			e, p, s := open(true)
			b.ReportAllocs()
			for b.Loop() {
				e.Tick(0)
				j, o := e.Reserve(0, s, 0)
				mustOK(b, o)
				st, _ := e.JobStats(0, j.ID)
				mustOK(b, e.Delete(s, j.ID))
				e.Use(p, []byte(st.Tube))
				e.Put(0, p, Spec{TTR: 60}, benchBody)
			}
		})
		b.Run(fmt.Sprintf("waits/tubes=%d", tubes), func(b *testing.B) {
			e, p, s := open(false)
			b.ReportAllocs()
			for b.Loop() {
				e.Tick(0)
				if _, o := e.Reserve(0, s, 9); o != Waiting {
					b.Fatal(o)
				}
				id, _ := e.Put(0, p, Spec{TTR: 60}, benchBody)
				mustOK(b, e.Delete(s, id))
			}
		})
	}
}

// BenchmarkPage is what a page of 1000 jobs costs, out of a million that were put in order,
// with different priorities, or into a queue that others take from; and what it costs the
// next put and delete, which find the heap's pages shared.
func BenchmarkPage(b *testing.B) {
	const jobs, n = 1_000_000, 1000
	for _, shape := range []string{"ordered", "priorities", "taken"} {
		e := New(Options{})
		s := e.Open(nil)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range 2 * jobs {
			if shape == "taken" || i < jobs {
				e.Put(0, s, Spec{Pri: rng.Uint32() * count32(shape == "priorities"), TTR: 60}, benchBody)
			}
		}
		for id := e.LastID() - jobs; id > 0; id-- {
			j, _ := e.Reserve(0, s, 0)
			mustOK(b, e.Delete(s, j.ID))
		}
		l, _ := e.list([]byte(DefaultTube), Ready, Cursor{})
		all := e.entries(&l)
		for _, at := range []int{0, 10_000, jobs / 2, jobs - n} {
			b.Run(fmt.Sprintf("%s/at=%d", shape, at), func(b *testing.B) {
				after := Cursor{}
				if at > 0 {
					after = all[at-1].cursor()
				}
				looks := 0
				for b.Loop() {
					p, o := e.BeginPage([]byte(DefaultTube), Ready, after, n)
					mustOK(b, o)
					for e.ContinuePage(0, &p, func(JobStats, Cursor) {}) {
						e.Tick(0)
					}
					looks = p.search.looks
				}
				b.ReportMetric(float64(looks), "looks")
			})
		}
		b.Run(shape+"/next", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.BeginPage([]byte(DefaultTube), Ready, Cursor{}, n)
				putReserveDelete(b, e, 0, s)
			}
		})
	}
}
