package engine

import (
	"slices"
	"testing"
)

// entries returns all jobs of a list that are as it says, in their order.
func (e *Engine) entries(l *jobList) (all []entry) {
	v := l.jobs
	v.runs = slices.Clone(v.runs)
	w := newQueueWalk(v)
	for x, ok := w.next(&e.jobs); ok; x, ok = w.next(&e.jobs) {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b entry) int { // reserved ones have no order
		if a.before(b) {
			return -1
		}
		return 1
	})
	return slices.DeleteFunc(all, func(x entry) bool { return e.listed(l, x) == nil })
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
