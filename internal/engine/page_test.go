package engine

import (
	"math"
	"slices"
	"testing"
)

// pageOf tells of a page at once, and checks that no turn is long.
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

// A page is the jobs after the cursor, whatever its size and the state.
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
		l, _ := e.list([]byte(DefaultTube), state, Cursor{})
		for e.continueList(&l) {
		}
		for _, n := range []int{0, 1, 7, 999, 3000, 5000} {
			after, rest := Cursor{}, e.entries(&l)
			for range 4 {
				var want []uint64
				end := after
				for _, x := range rest[:min(n, len(rest))] {
					want = append(want, e.jobs.at(x.slot).id)
					end = x.cursor()
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

// Who goes from page to page sees every job exactly once that stays, in order, whatever
// happens between the turns. A page with room left is the end.
func TestPagesMeanwhile(t *testing.T) {
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

// A page near the beginning looks at few of the jobs, whatever the heap has gone through,
// and no page looks at one twice.
func TestPageLooks(t *testing.T) {
	const jobs = 100_000
	rng := seeded(t)
	for name, fill := range map[string]func(*Engine, *Session){
		"put in order": func(e *Engine, s *Session) {
			for range jobs {
				e.Put(0, s, Spec{TTR: 9}, nil)
			}
		},
		"put with priorities": func(e *Engine, s *Session) {
			for range jobs {
				e.Put(0, s, Spec{Pri: rng.Uint32(), TTR: 9}, nil)
			}
		},
		"put and taken for long": func(e *Engine, s *Session) {
			for range 2 * jobs {
				e.Put(0, s, Spec{TTR: 9}, nil)
			}
			for id := range uint64(jobs) {
				e.Delete(s, 1+id)
			}
		},
	} {
		e := New(Options{})
		s := e.Open(nil)
		fill(e, s)
		for _, test := range []struct{ skip, n, most int }{
			{0, 1, 500},
			{0, 100, 5000},
			{1000, 100, 12_000},
			{jobs - 100, 100, jobs},
			{0, jobs, jobs},
		} {
			after := Cursor{}
			if test.skip > 0 {
				_, after = pageOf(t, e, Ready, Cursor{}, test.skip, func() {})
			}
			p, _ := e.BeginPage([]byte(DefaultTube), Ready, after, test.n)
			told := 0
			for e.ContinuePage(0, &p, func(JobStats, Cursor) { told++ }) {
			}
			if told != test.n || p.search.looks > test.most {
				t.Errorf("%s: to tell of %d jobs after %d of %d took %d looks, want %d at most", name, told, test.skip, jobs, p.search.looks, test.most)
			}
		}
	}
}

// A sweep ends at its limit.
func TestSweepAtMost(t *testing.T) {
	e := New(Options{})
	s := e.Open(nil)
	for range 50 {
		e.Put(0, s, Spec{TTR: 9}, nil)
	}
	w, _ := e.BeginMove([]byte(DefaultTube), []byte("other"), Ready)
	w.AtMost(20)
	for e.ContinueSweep(0, &w) {
	}
	if st, _ := e.TubeStats(0, []byte("other")); w.Done != 20 || st.Ready != 20 {
		t.Errorf("%d of %d jobs were moved", st.Ready, w.Done)
	}
}

// A slice of a search is as short where changes are logged: it makes none.
func TestPageSlices(t *testing.T) {
	const jobs = 3 * maxLoggedSlice * lookStep
	rng := seeded(t)
	e := New(Options{Logged: true})
	s := e.Open(nil)
	for range jobs {
		e.Put(0, s, Spec{Pri: rng.Uint32(), TTR: 9}, nil)
		e.TakeChanges()
	}
	p, _ := e.BeginPage([]byte(DefaultTube), Ready, Cursor{hi: math.MaxUint64, after: true}, 1)
	most := 0
	for !p.search.sorting {
		e.Tick(0)
		before := p.search.looks
		e.ContinuePage(0, &p, nil)
		most = max(most, p.search.looks-before)
	}
	if p.search.looks < jobs/2 || most > maxSlice*lookStep {
		t.Errorf("a slice has looked at %d of %d jobs", most, p.search.looks)
	}
}
