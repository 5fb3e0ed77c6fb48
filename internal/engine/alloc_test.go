package engine

import (
	"fmt"
	"testing"
)

// In the steady state, the verbs allocate nothing.
func TestAllocations(t *testing.T) {
	for _, logged := range []bool{false, true} {
		e := New(Options{Logged: logged})
		s, w := e.Open(nil), e.Open(deaf{})
		body := make([]byte, 64)
		spec := Spec{TTR: 60}
		now := int64(0)
		for range 100 { // fills the pages of the heaps
			e.Put(now, s, spec, body)
		}
		reserve := func() uint64 { j, _ := e.Reserve(now, s, 0); return j.ID }
		e.Use(w, []byte("quiet"))
		e.Watch(w, []byte("quiet"))
		e.Ignore(w, []byte(DefaultTube))
		tests := []struct {
			name string
			do   func()
		}{
			{"put, delete", func() { id, _ := e.Put(now, s, spec, body); e.Delete(s, id) }},
			{"put, reserve, delete", func() { e.Put(now, s, spec, body); e.Delete(s, reserve()) }},
			{"reserve, touch, release", func() { id := reserve(); e.Touch(now, s, id); e.Release(now, s, id, 0, 0) }},
			{"reserve, release delayed, kick-job", func() { id := reserve(); e.Release(now, s, id, 0, 9); e.KickJob(now, id) }},
			{"reserve, bury, kick", func() { e.Bury(s, reserve(), 0); e.Kick(now, s, 1) }},
			{"reserve, release delayed, tick", func() { e.Release(now, s, reserve(), 0, 1); now += second; e.Tick(now) }},
			{"reserve-job, peek, release", func() { e.ReserveJob(now, s, 50); e.Peek(50); e.Release(now, s, 50, 0, 0) }},
			{"use, ignore", func() { e.Use(s, []byte("quiet")); e.Use(s, []byte(DefaultTube)); e.Ignore(s, []byte("quiet")) }},
			{"wait, put, delete", func() {
				e.Reserve(now, w, 9)
				id, _ := e.Put(now, w, spec, body)
				e.Delete(w, id)
			}},
			{"a queue becomes long, and empty", func() {
				for range 200 {
					e.Put(now, w, spec, body)
				}
				for range 200 {
					j, _ := e.Reserve(now, w, 0)
					e.Delete(w, j.ID)
				}
			}},
			{"eight priorities", func() {
				for i := range uint32(1000) {
					e.Put(now, w, Spec{Pri: i % 8, TTR: 60}, body)
				}
				for range 1000 {
					j, _ := e.Reserve(now, w, 0)
					e.Delete(w, j.ID)
				}
			}},
			{"wait, timeout", func() { e.Reserve(now, w, 1); now += second; e.Tick(now) }},
		}
		for _, test := range tests {
			turn := func() { test.do(); e.RecycleChanges(e.TakeChanges()) }
			if n := testing.AllocsPerRun(200, turn); n != 0 {
				t.Errorf("logged %v: %s: %v allocations, want none", logged, test.name, n)
			}
			if err := e.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A tube needs a record and a name. Listing tubes allocates nothing, except that the next
// new tube copies one page.
func TestTubeAllocations(t *testing.T) {
	e := New(Options{})
	s := manyTubes(e, 1000)
	var names Names
	for _, test := range []struct {
		name string
		do   func()
		want float64
	}{
		{"list-tubes", func() { names = e.TubeNames() }, 0},
		{"list-tubes-watched", func() { names = e.Open(nil).WatchedNames() }, 5}, // three are of the session
		{"use of a new tube", func() { e.Use(s, []byte("new")); e.Use(s, []byte(DefaultTube)) }, 2},
		{"use of a new tube after list-tubes", func() { names = e.TubeNames(); e.Use(s, []byte("new")); e.Use(s, []byte(DefaultTube)) }, 4},
	} {
		if n := testing.AllocsPerRun(100, test.do); n > test.want {
			t.Errorf("%s: %v allocations, the budget is %v", test.name, n, test.want)
		}
	}
	if names.Len() == 0 {
		t.Error("the list is empty")
	}
}

// deaf is a Waiter that ignores its results.
type deaf struct{}

func (deaf) WaitOver(Job, Outcome) {}

// manyTubes returns a session that watches the given number of tubes, and default.
func manyTubes(e *Engine, tubes int) *Session {
	s := e.Open(nil)
	for k := range tubes {
		e.Watch(s, fmt.Appendf(nil, "tube-%08d", k))
	}
	return s
}
