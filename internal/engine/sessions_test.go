package engine

import (
	"slices"
	"testing"
)

// A reader that lists the sessions in slices sees each session that stays open exactly
// once, and no closed session.
func TestSessions(t *testing.T) {
	e := New(Options{})
	var all []*Session
	for range 10 {
		all = append(all, e.Open(hearing(func(Job, Outcome) {})))
	}
	var seen []uint64
	look := func(from, n int) (next int) {
		found, next := e.Sessions(from, n)
		for _, s := range found {
			seen = append(seen, e.SessionStats(0, s).ID)
		}
		return next
	}
	next := look(0, 4)
	e.Close(0, all[1]) // already seen
	e.Close(0, all[6]) // not yet seen
	e.Open(nil)        // reuses a free place
	for next = look(next, 3); next != 0; {
		next = look(next, 3)
	}
	for i, s := range all {
		want := 1
		if i == 6 {
			want = 0
		}
		if n := len(slices.DeleteFunc(slices.Clone(seen), func(id uint64) bool { return id != s.id })); n != want {
			t.Errorf("session %d was seen %d times, want %d: %v", s.id, n, want, seen)
		}
	}
}

func TestSessionStats(t *testing.T) {
	e, me, _ := eachState(Options{}, 0)
	w := e.Open(hearing(func(Job, Outcome) {}))
	e.Watch(w, []byte("none"))
	e.Ignore(w, []byte(DefaultTube))
	e.Reserve(5*second, w, Forever)
	st := e.SessionStats(7*second, w)
	if !st.Waiting || st.Waited != 2*second || st.Using != DefaultTube || !slices.Equal(st.Watching.collect(), []string{"none"}) || !st.Worker || st.Producer {
		t.Errorf("a waiting session: %+v", st)
	}
	e.ReserveJob(0, me, readyJob)
	if st := e.SessionStats(0, me); st.Waiting || st.Held != 2 || st.Using != "work" || !st.Producer {
		t.Errorf("a session with reserved jobs: %+v", st)
	}
	holds := e.Holds(2*second, me, 9)
	if len(holds) != 2 || holds[0].ID != myJob || holds[1] != (Hold{readyJob, "work", 2 * second, 0}) {
		t.Errorf("it holds %v", holds)
	}
	if first := e.Holds(2*second, me, 1); !slices.Equal(first, holds[:1]) {
		t.Errorf("the first that it holds is %v", first)
	}
	if st, _ := e.JobStats(0, theirJob); st.Holder != 2 {
		t.Errorf("the holder of the other's job is %d", st.Holder)
	}
}

// A refused put leaves no empty tube behind.
func TestPutIntoRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		set  func(e *Engine)
		want Outcome
	}{
		{"drained", (*Engine).Drain, Draining},
		{"drained and undrained", func(e *Engine) { e.Drain(); e.Undrain() }, OK},
		{"by the Log", func(e *Engine) { e.opt.Admit = func(ChangeKind, string, int) Outcome { return Failed } }, Failed},
		{"for memory", func(e *Engine) { e.SetLimits(Limits{Memory: 999}) }, TooBig},
		{"for a tube", func(e *Engine) { e.SetLimits(Limits{Tubes: 1}) }, OutOfMemory},
	} {
		e := New(Options{})
		test.set(e)
		id, o := e.PutInto(0, []byte("new"), Spec{}, make([]byte, 1000))
		if o != test.want || (id == 1) != (o == OK) {
			t.Errorf("%s: %d, %v, want %v", test.name, id, o, test.want)
		}
		if _, o := e.TubeStats(0, []byte("new")); (o == OK) != (test.want == OK) {
			t.Errorf("%s: the tube: %v", test.name, o)
		}
		if (e.LastID() == 1) == (test.want == TooBig) {
			t.Errorf("%s: the last id is %d", test.name, e.LastID())
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
	}
}
