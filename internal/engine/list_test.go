package engine

import (
	"slices"
	"testing"
)

// entries returns a copy of all entries of a list, in their order.
func (l *jobList) entries() (all []entry) {
	for _, page := range l.jobs.pages {
		all = append(all, page...)
	}
	slices.SortFunc(all, func(a, b entry) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return all
}

// A list is what there was when it was made, whatever happens after that.
func TestListStays(t *testing.T) {
	rng := seeded(t)
	e := New(Options{})
	s := e.Open(nil)
	for range 20 {
		for e.Stats().Ready < 5000 {
			e.Put(0, s, Spec{Pri: rng.Uint32N(9), TTR: 9}, nil)
		}
		l, o := e.list([]byte(DefaultTube), Ready)
		if o != OK || e.continueList(&l) {
			t.Fatal(o)
		}
		before := l.entries()
		if uint64(len(before)) != e.Stats().Ready {
			t.Fatalf("%d jobs are listed, there are %d", len(before), e.Stats().Ready)
		}
		for range 3000 {
			switch id := 1 + rng.Uint64N(e.LastID()); rng.IntN(3) {
			case 0:
				e.Put(0, s, Spec{Pri: rng.Uint32N(9), TTR: 9}, nil)
			default:
				e.Delete(s, id)
			}
		}
		if !slices.Equal(l.entries(), before) {
			t.Error("the list is another one")
		}
		if err := e.Check(); err != nil {
			t.Fatal(err)
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

// A page of what is not there is refused, or empty.
func TestPageOfNothing(t *testing.T) {
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
