package engine

import (
	"slices"
	"sync"
	"testing"
)

// ids returns those of the jobs of a page that are still there.
func (e *Engine) idsOf(l *JobList, page []Listed) (ids []uint64) {
	for _, x := range page {
		if st, o := e.Listed(0, l, x); o == OK {
			ids = append(ids, st.ID)
		}
	}
	return ids
}

// A list is what there was when it was made, whatever happens after that, and
// goes by itself when nobody has it any more. The race detector looks.
func TestListStays(t *testing.T) {
	rng := seeded(t)
	e := New(Options{})
	s := e.Open(nil)
	var wg sync.WaitGroup
	for range 20 {
		for e.Stats().Ready < 5000 {
			e.Put(0, s, Spec{Pri: rng.Uint32N(9), TTR: 9}, nil)
		}
		l, o := e.BeginList([]byte(DefaultTube), Ready)
		if o != OK || e.ContinueList(&l) {
			t.Fatal(o)
		}
		n := int(e.Stats().Ready)
		first, _ := l.Page(Cursor{}, n)
		ids := e.idsOf(&l, first)
		if len(ids) != n {
			t.Fatalf("%d jobs are listed, there are %d", len(ids), n)
		}
		wg.Go(func() {
			for k := range 5 {
				if again, _ := l.Page(Cursor{}, n); !slices.Equal(again, first) {
					t.Errorf("the list is another one after %d times", k)
				}
			}
		})
		for range 3000 {
			switch id := 1 + rng.Uint64N(e.LastID()); rng.IntN(3) {
			case 0:
				e.Put(0, s, Spec{Pri: rng.Uint32N(9), TTR: 9}, nil)
			default:
				e.Delete(s, id)
			}
		}
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}

// Who goes from page to page, with a new list for each, sees every job exactly
// once that stays, in order.
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
			l, _ := e.BeginList([]byte(DefaultTube), state)
			for e.ContinueList(&l) {
				change()
			}
			var page []Listed
			page, c = l.Page(c, 10)
			for _, id := range e.idsOf(&l, page) {
				if _, ok := stays[id]; ok {
					stays[id]++
				}
			}
			more = len(page) == 10
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

// What is no cursor is refused.
func TestParseCursor(t *testing.T) {
	for _, text := range []string{"x", "1", "1.", ".1", "1.2.3", "01.2", "1.2 ", "-1.2", "1.100000000", "A.1"} {
		if c, err := ParseCursor(text); err == nil {
			t.Errorf("%q is read as %q", text, c)
		}
	}
	if c, err := ParseCursor(""); err != nil || c != (Cursor{}) {
		t.Errorf("the beginning is read as %q, %v", c, err)
	}
}

// A list of what is not there is refused, or empty.
func TestListOfNothing(t *testing.T) {
	e := New(Options{})
	if _, o := e.BeginList([]byte("none"), Ready); o != NotFound {
		t.Errorf("of no tube: %v", o)
	}
	if _, o := e.BeginList([]byte(DefaultTube), 0); o != NotFound {
		t.Errorf("of no state: %v", o)
	}
	for _, state := range []State{Ready, Delayed, Buried, Reserved} {
		l, o := e.BeginList([]byte(DefaultTube), state)
		more := e.ContinueList(&l)
		if page, c := l.Page(Cursor{}, 9); o != OK || more || len(page) > 0 || c != (Cursor{}) {
			t.Errorf("%v: %v, more %v, %d jobs", state, o, more, len(page))
		}
	}
}
