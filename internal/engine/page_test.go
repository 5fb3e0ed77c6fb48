package engine

import (
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

// A page is what JobList.Page has, whatever its size and the state.
func TestPageSearch(t *testing.T) {
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
		l, _ := e.BeginList([]byte(DefaultTube), state)
		for e.ContinueList(&l) {
		}
		for _, n := range []int{0, 1, 7, 999, 3000, 5000} {
			var after Cursor
			for range 4 {
				got, next := pageOf(t, e, state, after, n, func() {})
				var want []uint64
				end := after
				if n > 0 {
					var page []Listed
					page, end = l.Page(after, n)
					want = e.idsOf(&l, page)
				}
				if !slices.Equal(got, want) || next != end {
					t.Fatalf("%v: a page of %d behind %v has %d jobs, want %d", state, n, after, len(got), len(want))
				}
				after = next
			}
		}
	}
}

// Jobs that go while they are looked for are left out, and others come instead: a page
// with room left is the end.
func TestPageSearchMeanwhile(t *testing.T) {
	rng := seeded(t)
	e := New(Options{})
	e.slice = 20
	s := e.Open(nil)
	stays := make(map[uint64]bool)
	for range 3000 {
		id, _ := e.Put(0, s, Spec{Pri: rng.Uint32N(9), TTR: 9}, nil)
		stays[id] = true
	}
	seen := make(map[uint64]bool)
	var after Cursor
	for {
		ids, next := pageOf(t, e, Ready, after, 100, func() {
			for range 5 {
				id := 1 + rng.Uint64N(3000)
				e.Delete(s, id)
				delete(stays, id)
			}
		})
		for _, id := range ids {
			if seen[id] {
				t.Fatalf("job %d is there twice", id)
			}
			seen[id] = true
		}
		if after = next; len(ids) < 100 {
			break
		}
	}
	if len(stays) == 0 || len(stays) == 3000 {
		t.Fatalf("%d jobs stay", len(stays))
	}
	for id := range stays {
		if !seen[id] {
			t.Errorf("job %d stays and is not listed", id)
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
