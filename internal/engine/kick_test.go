package engine

import "testing"

// slicedKick returns an engine with 10 jobs that can be kicked, in the given
// state, of which it kicks 3 at a time.
func slicedKick(state State, opt Options) (*Engine, *Session) {
	e := New(opt)
	e.slice = 3
	s := e.Open(nil)
	for range 10 {
		id, _ := e.Put(0, s, Spec{Delay: 9, TTR: 9}, nil)
		if state == Buried {
			e.ReserveJob(0, s, id)
			e.Bury(s, id, 0)
		}
	}
	e.TakeChanges()
	return e, s
}

// A kick of many jobs is done in slices, each with its own changes, and counts
// all of them.
func TestKickInSlices(t *testing.T) {
	for _, state := range []State{Buried, Delayed} {
		e, s := slicedKick(state, Options{Logged: true})
		k := e.BeginKick(s, 8)
		for _, want := range []struct {
			kicked uint32
			more   bool
		}{{3, true}, {6, true}, {8, false}, {8, false}} {
			before := k.Kicked
			if more := e.ContinueKick(0, &k); more != want.more || k.Kicked != want.kicked {
				t.Errorf("%v: kicked %d, more %v, want %+v", state, k.Kicked, more, want)
			}
			if n := uint32(len(e.TakeChanges())); n != k.Kicked-before {
				t.Errorf("%v: %d changes for %d jobs", state, n, k.Kicked-before)
			}
			if st := e.Stats(); st.Ready != uint64(want.kicked) {
				t.Errorf("%v: %d are ready, want %d", state, st.Ready, want.kicked)
			}
			if err := e.Check(); err != nil {
				t.Error(err)
			}
		}
	}
}

// What a kick is about does not change while it goes on: a job that is buried
// meanwhile does not keep it from delayed ones.
func TestKickKeepsToItsState(t *testing.T) {
	e, s := slicedKick(Delayed, Options{})
	k := e.BeginKick(s, 100)
	e.ContinueKick(0, &k)
	w := e.Open(nil)
	mustReserve(t, e, 0, w, 0, OK)
	e.Bury(w, 1, 0)
	for e.ContinueKick(0, &k) {
	}
	if st := e.Stats(); k.Kicked != 10 || st.Buried != 1 || st.Delayed != 0 || st.Ready != 9 {
		t.Errorf("kicked %d: %+v", k.Kicked, st)
	}
}

// A worker that buries each job as soon as it is kicked does not keep a kick
// going for ever.
func TestKickEnds(t *testing.T) {
	e, s := slicedKick(Buried, Options{})
	w := e.Open(nil)
	k := e.BeginKick(s, 1<<32-1)
	for more := true; more; {
		more = e.ContinueKick(0, &k)
		for e.Stats().Ready > 0 {
			e.Bury(w, mustReserve(t, e, 0, w, 0, OK), 0)
		}
		if k.Kicked > 10 {
			t.Fatalf("kicked %d of 10 jobs", k.Kicked)
		}
	}
	if st := e.Stats(); k.Kicked != 10 || st.Buried != 10 {
		t.Errorf("kicked %d: %+v", k.Kicked, st)
	}
}

// Jobs that are gone by then are not waited for.
func TestKickOfJobsThatGo(t *testing.T) {
	e, s := slicedKick(Buried, Options{})
	k := e.BeginKick(s, 10)
	e.ContinueKick(0, &k)
	for id := uint64(4); id <= 9; id++ {
		e.Delete(s, id)
	}
	if more := e.ContinueKick(0, &k); more || k.Kicked != 4 {
		t.Errorf("kicked %d, more %v; want 4", k.Kicked, more)
	}
}

// A Log that refuses ends a kick for good, in whatever slice.
func TestKickRefused(t *testing.T) {
	room := 1 << 30
	e, s := slicedKick(Buried, Options{Logged: true, Admit: func(ChangeKind, string, int) Outcome {
		if room--; room < 0 {
			return OutOfMemory
		}
		return OK
	}})
	room = 5
	k := e.BeginKick(s, 10)
	for range 2 {
		e.ContinueKick(0, &k)
	}
	room = 5
	if more := e.ContinueKick(0, &k); more || k.Kicked != 5 {
		t.Errorf("kicked %d, more %v; want 5", k.Kicked, more)
	}
}
