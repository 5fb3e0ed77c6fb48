package engine

import (
	"fmt"
	"testing"
)

var benchBody = make([]byte, 64)

// mustOK fails a benchmark that does not do what it measures.
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
	// Other tubes, each with a job, are in nobody's way.
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
	// What the log would be told.
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

// BenchmarkReserveTubes uses another of many tubes for each job: none is in the
// processor's cache.
func BenchmarkReserveTubes(b *testing.B) {
	for _, tubes := range []int{10, 100000} {
		b.Run(fmt.Sprintf("tubes=%d", tubes), func(b *testing.B) {
			e := New(Options{})
			sessions := make([]*Session, tubes)
			for k := range sessions {
				name := fmt.Appendf(nil, "t%d", k)
				s := e.Open(nil)
				e.Use(s, name)
				e.Watch(s, name)
				e.Ignore(s, []byte(DefaultTube))
				sessions[k] = s
				putReserveDelete(b, e, 0, s) // its heaps have their pages now
			}
			b.ReportAllocs()
			k := 0
			for b.Loop() {
				putReserveDelete(b, e, 0, sessions[k])
				k = (k + 7919) % tubes
			}
		})
	}
}

// BenchmarkWakeWaiter serves the first of many waiting workers, who comes back
// to wait at the end.
func BenchmarkWakeWaiter(b *testing.B) {
	for _, waiting := range []int{1, 1000, 100000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			e := New(Options{})
			p := e.Open(nil)
			workers := make([]*Session, waiting)
			for k := range workers {
				workers[k] = e.Open(deaf{})
				e.Reserve(0, workers[k], 3600)
			}
			b.ReportAllocs()
			next := 0
			for b.Loop() {
				id, _ := e.Put(0, p, Spec{TTR: 60}, benchBody)
				w := workers[next]
				mustOK(b, e.Delete(w, id))
				if _, o := e.Reserve(0, w, 3600); o != Waiting {
					b.Fatalf("outcome %v", o)
				}
				next = (next + 1) % waiting
			}
		})
	}
}

// BenchmarkDelayDue lets a job out of many come due.
func BenchmarkDelayDue(b *testing.B) {
	for _, delayed := range []int{0, 1000000} {
		b.Run(fmt.Sprintf("delayed=%d", delayed), func(b *testing.B) {
			e := New(Options{})
			s := e.Open(nil)
			for k := range uint32(delayed) {
				e.Put(0, s, Spec{Delay: 1<<31 + k, TTR: 60}, benchBody)
			}
			b.ReportAllocs()
			now := int64(0)
			for b.Loop() {
				e.Put(now, s, Spec{Delay: 1, TTR: 60}, benchBody)
				now += second
				e.Tick(now)
				j, o := e.Reserve(now, s, 0)
				mustOK(b, o)
				mustOK(b, e.Delete(s, j.ID))
			}
		})
	}
}

// BenchmarkTouch moves a job within those that a session holds.
func BenchmarkTouch(b *testing.B) {
	for _, held := range []int{1, 10000} {
		b.Run(fmt.Sprintf("held=%d", held), func(b *testing.B) {
			e := New(Options{})
			s := e.Open(nil)
			for range held {
				e.Put(0, s, Spec{TTR: 1000}, benchBody)
				e.Reserve(0, s, 0)
			}
			b.ReportAllocs()
			now, id := int64(0), uint64(0)
			for b.Loop() {
				now += 1000
				id = id%uint64(held) + 1
				mustOK(b, e.Touch(now, s, id))
			}
		})
	}
}

// BenchmarkPutLarge is what one very large job costs its turn: one copy.
func BenchmarkPutLarge(b *testing.B) {
	body := make([]byte, 256<<20)
	e := New(Options{})
	s := e.Open(nil)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		id, o := e.Put(0, s, Spec{TTR: 60}, body)
		mustOK(b, o)
		mustOK(b, e.Delete(s, id))
	}
}
