package engine

import (
	"slices"
	"testing"
)

// pageOf reads a whole page, and checks that no turn is long.
func pageOf(t *testing.T, e *Engine, state State, after Cursor, n int, between func()) (ids []uint64, next Cursor) {
	t.Helper()
	p, o := e.BeginPage([]byte(DefaultTube), state, after, n)
	if o != OK {
		t.Fatal(o)
	}
	next = after
	for {
		told := len(ids)
		more := e.ContinuePage(0, &p, func(st JobStats, at Cursor) {
			ids = append(ids, st.ID)
			next = at
		})
		if len(ids)-told > e.slice {
			t.Fatalf("%d jobs in a turn", len(ids)-told)
		}
		if !more {
			return ids, next
		}
		between()
		e.Tick(0)
	}
}

// A page contains the jobs after the cursor, for every size and state.
func TestPage(t *testing.T) {
	rng := seeded(t)
	for _, state := range []State{Ready, Delayed, Buried, Reserved} {
		e := New(Options{})
		e.slice = 20
		s := e.Open(nil)
		for range 3000 {
			id, _ := e.Put(0, s, Spec{Pri: rng.Uint32N(9), Delay: count32(state == Delayed) * (1 + rng.Uint32N(9)), TTR: 1 + rng.Uint32N(9)}, nil)
			if state == Reserved || state == Buried {
				e.ReserveJob(0, s, id)
			}
			if state == Buried {
				e.Bury(s, id, 0)
			}
		}
		var all []*job
		e.each(func(_ slot, j *job) bool { all = append(all, j); return true })
		slices.SortFunc(all, func(a, b *job) int {
			if e.jobs.keyOf(a).Before(e.jobs.keyOf(b)) {
				return -1
			}
			return 1
		})
		for _, n := range []int{0, 1, 7, 999, 3000, 5000} {
			after, rest := Cursor{}, all
			for range 4 {
				var want []uint64
				end := after
				for _, j := range rest[:min(n, len(rest))] {
					want = append(want, j.id)
					end = Cursor{e.jobs.keyOf(j)}
				}
				got, next := pageOf(t, e, state, after, n, func() {})
				if !slices.Equal(got, want) || next != end {
					t.Fatalf("%v: a page of %d after %v has %d jobs, want %d", state, n, after, len(got), len(want))
				}
				after, rest = next, rest[len(want):]
			}
		}
	}
}

// A reader of all pages sees each remaining job exactly once, in order, regardless of
// changes between the turns. Only the last page is incomplete.
func TestPagesDuringChanges(t *testing.T) {
	rng := seeded(t)
	for _, state := range []State{Ready, Delayed, Buried, Reserved} {
		e := New(Options{})
		e.slice = 50
		s := e.Open(nil)
		holders := []*Session{s, e.Open(nil), e.Open(nil)}
		put := func() uint64 {
			id, _ := e.Put(0, s, Spec{Pri: rng.Uint32N(5), Delay: count32(state == Delayed) * (1 + rng.Uint32N(5)), TTR: 1 + rng.Uint32N(5)}, nil)
			if state == Reserved || state == Buried {
				h := holders[rng.IntN(len(holders))]
				e.ReserveJob(0, h, id)
				if state == Buried {
					e.Bury(h, id, 0)
				}
			}
			return id
		}
		stays := make(map[uint64]int)
		for len(stays) < 500 {
			stays[put()] = 0
			put()
		}
		change := func() {
			for range 3 {
				if e.Stats().TotalJobs < 3000 {
					put()
				}
				id := 1 + rng.Uint64N(e.LastID())
				if _, ok := stays[id]; !ok {
					for _, h := range holders {
						e.Delete(h, id)
					}
				}
			}
		}
		for c, more := (Cursor{}), true; more; {
			var ids []uint64
			ids, c = pageOf(t, e, state, c, 10, change)
			for _, id := range ids {
				if _, ok := stays[id]; ok {
					stays[id]++
				}
			}
			more = len(ids) == 10
			change()
			if back, err := ParseCursor(c.String()); back != c || err != nil {
				t.Fatalf("cursor %q is read as %q, %v", c, back, err)
			}
		}
		for id, n := range stays {
			if n != 1 {
				t.Errorf("%v: job %d was seen %d times", state, id, n)
			}
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
	}
}

// Invalid cursors are refused.
func TestParseCursor(t *testing.T) {
	for _, text := range []string{"x", "1", "1.", ".1", "1.2.3", "01.2", "1.2 ", "-1.2", "1.10000000000000000", "A.1", "0.0"} {
		if c, err := ParseCursor(text); err == nil {
			t.Errorf("%q is read as %q", text, c)
		}
	}
	if c, err := ParseCursor(""); err != nil || c != (Cursor{}) {
		t.Errorf("the beginning is read as %q, %v", c, err)
	}
}

// A page of a missing tube is refused. An existing tube without jobs has an empty page.
func TestPageOfMissingTube(t *testing.T) {
	e := New(Options{})
	if _, o := e.BeginPage([]byte("none"), Ready, Cursor{}, 9); o != NotFound {
		t.Errorf("of no tube: %v", o)
	}
	if _, o := e.BeginPage([]byte(DefaultTube), 0, Cursor{}, 9); o != NotFound {
		t.Errorf("of no state: %v", o)
	}
	for _, state := range []State{Ready, Delayed, Buried, Reserved} {
		if ids, at := pageOf(t, e, state, Cursor{}, 9, func() { t.Error("it takes several turns") }); len(ids) > 0 || at != (Cursor{}) {
			t.Errorf("%v: %d jobs", state, len(ids))
		}
	}
}

// A sweep stops at its limit.
func TestSweepAtMost(t *testing.T) {
	e := New(Options{})
	s := e.Open(nil)
	for range 50 {
		e.Put(0, s, Spec{TTR: 9}, nil)
	}
	w, _ := e.BeginMove([]byte(DefaultTube), []byte("other"), Ready, 20)
	for e.ContinueSweep(0, &w) {
	}
	if st, _ := e.TubeStats(0, []byte("other")); w.Done != 20 || st.Ready != 20 {
		t.Errorf("%d of %d jobs were moved", st.Ready, w.Done)
	}
}
