package model

import (
	"flag"
	"fmt"
	"hash/maphash"
	"testing"
)

var (
	statesFlag = flag.Int("model.states", 50_000, "how many states each run of TestModel visits at most; 0: all")
	boundsFlag = flag.String("model.bounds", "", "the only run: how many terms, facts, crashes, refused proposals, snapshots and reserves there are at most, such as \"2 2 1 1 1 0\"")
)

// A world visits all states, breadth first.
type world struct {
	planted string // mistake
	bounds  bounds
	seed    maphash.Seed

	s       state // that is left
	next    state
	format  string // of the step
	args    []any
	problem string // of the step

	seen  map[uint64]uint64 // hash of a state -> hash of the one before
	level []state           // to be visited next
	found string            // what is wrong, and how it has come to that
	after func()            // with next; nil: it is visited later
}

func (w *world) step(format string, args ...any) {
	w.next, w.format, w.args, w.problem = w.s, format, args, ""
}

func (w *world) wrong(format string, args ...any) { w.problem = fmt.Sprintf(format, args...) }

// done ends a step.
func (w *world) done() {
	for i := range w.next.members {
		w.next.members[i].look()
		w.next.members[i].activate()
	}
	if w.problem == "" {
		w.check()
	}
	if w.after != nil {
		w.after()
		return
	}
	hash := maphash.Comparable(w.seed, w.next)
	if _, known := w.seen[hash]; !known {
		w.seen[hash] = maphash.Comparable(w.seed, w.s)
		w.level = append(w.level, w.next)
		if w.problem != "" && w.found == "" {
			w.found = w.problem
			w.found += w.way(hash)
		}
	}
}

// check compares the engines with what they should be.
func (w *world) check() {
	s := &w.next
	for i := range s.members {
		m := &s.members[i]
		if m.spoilt || s.installs(i) {
			continue
		}
		w.checkReplies(m)
		switch {
		case m.decides == 0 && m.engine.hasReserved():
			w.wrong("member %d follows and has %v", i, m.engine)
		case m.decides == 0 && m.applied >= max(m.whole, m.kept):
			if want := s.replay(m.applied); !m.engine.equal(want) {
				w.wrong("member %d has applied %d and has %v, want %v", i, m.applied, m.engine, want)
			}
		case m.decides != 0 && m.decides == m.epoch:
			want := s.replay(m.applied)
			for at := m.applied + 1; at <= m.last; at++ {
				want.apply(m.log[at].fact)
			}
			for _, l := range m.box[:m.letters] {
				if l.epoch == m.decides {
					want.apply(l.fact)
				}
			}
			if !m.engine.equal(want) || m.applied < m.whole {
				w.wrong("leader %d has %v, and its log makes %v", i, m.engine, want)
			}
		}
	}
}

// steps takes all steps from the state s.
func (w *world) steps() {
	for m := range members {
		for other := range members {
			w.elect(m, other)
			w.copyLog(m, other)
			w.fetch(m, other)
		}
		w.syncLog(m)
		w.commit(m)
		for job := range jobs {
			for kind := put; kind <= del; kind++ {
				w.execute(m, job, kind)
			}
			w.clean(m, job)
			w.reserve(m, job)
		}
		w.notice(m)
		w.readLetter(m, false)
		w.readLetter(m, true)
		w.endEpoch(m)
		w.apply(m)
		w.cutLog(m)
		w.crash(m, false, false)
		w.crash(m, true, false)
		w.crash(m, true, true)
	}
	w.restore()
	w.install()
}

// explore visits at most so many states, or all if it is 0. It returns whether there are no more.
func (w *world) explore(most int) (all bool, depth int) {
	w.seed = maphash.MakeSeed()
	first := newState(w.bounds)
	w.seen = map[uint64]uint64{maphash.Comparable(w.seed, first): 0}
	w.level = []state{first}
	for ; len(w.level) > 0 && w.found == ""; depth++ {
		now := w.level
		w.level = nil
		for i := range now {
			if w.s = now[i]; w.found != "" || most > 0 && len(w.seen) >= most {
				return false, depth
			}
			w.steps()
		}
	}
	return true, depth
}

// way returns the steps that lead to a state.
func (w *world) way(hash uint64) (text string) {
	var way []uint64
	for ; hash != 0; hash = w.seen[hash] {
		way = append(way, hash)
	}
	from := &world{planted: w.planted, bounds: w.bounds, seed: w.seed, s: newState(w.bounds)}
	for i := len(way) - 2; i >= 0; i-- {
		var taken *state
		from.after = func() {
			if taken == nil && maphash.Comparable(w.seed, from.next) == way[i] {
				next := from.next
				taken = &next
				text += "\n  " + fmt.Sprintf(from.format, from.args...)
			}
		}
		from.steps()
		from.s = *taken
	}
	return text
}

// runs are those that can be visited whole, in up to ten million states, and one that cannot.
var runs = []bounds{
	{terms: 1, facts: 1, crashes: 1, refusals: 1},
	{terms: 1, facts: 1, crashes: 1, snapshots: 1},
	{terms: 1, facts: 2, refusals: 1},
	{terms: 1, facts: 2, snapshots: 1},
	{terms: 2, facts: 1, reserves: 1},
	{terms: 2, facts: 2},
	{terms: 2, facts: 2, crashes: 1, refusals: 1, snapshots: 1},
}

// TestModel finds no mistake.
func TestModel(t *testing.T) {
	if *boundsFlag != "" {
		var b bounds
		if _, err := fmt.Sscan(*boundsFlag, &b.terms, &b.facts, &b.crashes, &b.refusals, &b.snapshots, &b.reserves); err != nil {
			t.Fatal("model.bounds:", err)
		}
		runs = []bounds{b}
	}
	for _, b := range runs {
		w := &world{bounds: b}
		all, depth := w.explore(*statesFlag)
		if w.found != "" {
			t.Fatal(w.found)
		}
		t.Logf("%+v: %d states, up to %d steps; all of them: %v", b, len(w.seen), depth, all)
	}
}

// TestPlanted finds each planted mistake whose shortest way is in the states that are visited.
func TestPlanted(t *testing.T) {
	for planted, of := range map[string]struct {
		bounds
		states int // until it is found, and some more
	}{
		"a proposal carries no epoch":                  {bounds{terms: 2, facts: 2}, 1024000},
		"a refused proposal leaves a hole":             {bounds{terms: 1, facts: 2, refusals: 1}, 1000},
		"the engine is kept when the epoch ends":       {bounds{terms: 2, facts: 1}, 4000},
		"an entry is applied though the epoch is over": {bounds{terms: 2, facts: 1}, 2048000},
		"what waits for the loop counts as committed":  {bounds{terms: 2, facts: 1}, 8000},
		"a kept engine keeps its reservations":         {bounds{terms: 2, facts: 1, reserves: 1}, 256000},
		"the last entry of another leader is skipped":  {bounds{terms: 2, facts: 1}, 256000},
		"an append is answered before its sync":        {bounds{terms: 2, facts: 1, crashes: 1}, 8000},
		"cleaning takes jobs from the engine":          {bounds{terms: 2, facts: 2}, 2048000},
		"the log is cut at a mark that is not synced":  {bounds{terms: 1, facts: 1, crashes: 1}, 1000},
		"the mark is before its facts":                 {bounds{terms: 1, facts: 1, crashes: 1}, 8000},
		"a snapshot is of the engine":                  {bounds{terms: 2, facts: 1, snapshots: 1}, 32000},
	} {
		t.Run(planted, func(t *testing.T) {
			if of.states > *statesFlag {
				t.Skipf("needs up to %d states: -model.states", of.states)
			}
			w := &world{planted: planted, bounds: of.bounds}
			w.explore(3_000_000)
			if w.found == "" {
				t.Fatalf("%d states, and nothing is wrong", len(w.seen))
			}
			t.Logf("in %d states: %s", len(w.seen), w.found)
		})
	}
}
