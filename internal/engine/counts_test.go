package engine

import "testing"

// A tube counts what its jobs come to, wherever that was asked for.
func TestTubeCounts(t *testing.T) {
	e := New(Options{})
	s := e.Open(nil)
	put := func(ttr uint32) uint64 {
		id, o := e.PutInto(0, []byte("mail"), Spec{TTR: ttr}, []byte("x"))
		if o != OK {
			t.Fatal(o)
		}
		return id
	}
	released, buried, late := put(60), put(60), put(1)
	for _, id := range []uint64{released, buried, late} {
		if _, o := e.ReserveJob(0, s, id); o != OK {
			t.Fatal(o)
		}
	}
	e.Release(0, s, released, 0, 0)
	e.Bury(s, buried, 0)
	e.BuryJob(released, 0)
	e.Tick(2 * second)
	st, _ := e.TubeStats(0, []byte("mail"))
	if st.Timeouts != 1 || st.Releases != 1 || st.Buries != 2 {
		t.Errorf("timeouts, releases and buries are %d, %d and %d, want 1, 1 and 2", st.Timeouts, st.Releases, st.Buries)
	}
}
