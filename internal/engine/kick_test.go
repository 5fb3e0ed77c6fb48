package engine

import "testing"

// slicedKick returns an engine with 10 jobs in a state that can be kicked. Each slice of
// a kick covers 3 jobs.
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

// A worker that buries each job as soon as it is kicked cannot prolong a kick forever.
func TestKickEnds(t *testing.T) {
	e, s := slicedKick(Buried, Options{})
	w := e.Open(nil)
	k := e.BeginKick(s, 1<<32-1)
	for more := true; more; {
		more = e.ContinueSweep(0, &k)
		for e.Stats().Ready > 0 {
			e.Bury(w, mustReserve(t, e, 0, w, 0, OK), 0)
		}
		if k.Done > 10 {
			t.Fatalf("kicked %d of 10 jobs", k.Done)
		}
	}
	if st := e.Stats(); k.Done != 10 || st.Buried != 10 {
		t.Errorf("kicked %d: %+v", k.Done, st)
	}
}
