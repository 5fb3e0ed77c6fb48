package engine

import (
	"testing"
)

// A sweep processes exactly the jobs that existed at its start and stayed, regardless of
// changes between its slices.
func TestSweepDuringChanges(t *testing.T) {
	rng := seeded(t)
	for round := range 200 {
		e := New(Options{})
		e.slice = 1 + rng.IntN(5)
		jobs := rng.IntN(60)
		if round%20 < 3 { // enough jobs for several leaves
			e.slice, jobs = 50, 3*leafJobs
		}
		s := e.Open(nil)
		e.Use(s, []byte("from"))
		e.Watch(s, []byte("from"))
		state := []State{Ready, Delayed, Buried}[round%3]
		put := func() uint64 {
			id, _ := e.Put(0, s, Spec{Pri: rng.Uint32N(9), Delay: count32(state == Delayed) * (1 + rng.Uint32N(9)), TTR: 9}, nil)
			if state == Buried {
				e.ReserveJob(0, s, id)
				e.Bury(s, id, 0)
			}
			return id
		}
		old := make(map[uint64]bool)
		for range jobs {
			old[put()] = true
		}
		w, o := e.BeginClear([]byte("from"), state, 0)
		if round%2 == 0 {
			w, o = e.BeginMove([]byte("from"), []byte("to"), state, 0)
		}
		if o != OK {
			t.Fatal(o)
		}
		for e.ContinueSweep(0, &w) {
			for range rng.IntN(5) {
				switch id := 1 + uint64(rng.IntN(int(e.LastID()+1))); rng.IntN(3) {
				case 0:
					put()
				case 1:
					if st, _ := e.JobStats(0, id); st.Tube == "from" && e.Delete(s, id) == OK {
						delete(old, id)
					}
				case 2:
					if st, _ := e.JobStats(0, id); st.Tube == "from" {
						e.ReserveJob(0, s, id)
						delete(old, id)
					}
				}
			}
			if err := e.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if w.Done < uint64(len(old)) || w.Refused != OK {
			t.Errorf("%v: %d are done of %d, refused %v", state, w.Done, len(old), w.Refused)
		}
		for id := range e.LastID() + 1 {
			st, o := e.JobStats(0, id)
			if here := o == OK && st.Tube == "from" && st.State == state; here && old[id] {
				t.Errorf("%v: job %d still exists", state, id)
			}
			if o == OK && st.Tube == "to" && !old[id] && id > uint64(jobs) {
				t.Errorf("%v: job %d was put later, and moved", state, id)
			}
		}
	}
}

func count32(b bool) uint32 { return uint32(count(b)) }

// A refused job stays where it was.
func TestSweepRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		set  func(e *Engine)
		want Outcome
		done uint64
	}{
		{"by the Log", func(e *Engine) {
			n := 0
			e.opt.Admit = func(kind ChangeKind, tube string, body int) Outcome {
				if n++; kind == JobMoved && tube == "to" && body == 5 && n == 3 {
					return Failed
				}
				return OK
			}
		}, Failed, 2},
		{"for jobs", func(e *Engine) { // only a new tube takes additional memory
			e.Use(e.Open(nil), []byte("to"))
			e.SetLimits(Limits{Memory: 1, Tube: func(string) TubeLimits { return TubeLimits{Jobs: 3} }})
		}, OutOfMemory, 3},
		{"for bytes", func(e *Engine) {
			e.SetLimits(Limits{Tube: func(string) TubeLimits { return TubeLimits{Bytes: 5} }})
		}, OutOfMemory, 1},
		{"for a tube", func(e *Engine) { e.SetLimits(Limits{Tubes: 2}) }, OutOfMemory, 0},
		{"for the first", func(e *Engine) {
			e.SetLimits(Limits{Tube: func(string) TubeLimits { return TubeLimits{Bytes: 1} }})
		}, OutOfMemory, 0},
	} {
		e := New(Options{Logged: true})
		s := e.Open(nil)
		e.Use(s, []byte("from"))
		for range 5 {
			e.Put(0, s, Spec{}, []byte("hello"))
		}
		e.TakeChanges()
		test.set(e)
		w, _ := e.BeginMove([]byte("from"), []byte("to"), Ready, 0)
		for e.ContinueSweep(0, &w) {
		}
		if w.Refused != test.want || w.Done != test.done {
			t.Errorf("refused %s: %v after %d, want %v after %d", test.name, w.Refused, w.Done, test.want, test.done)
		}
		if n := len(e.TakeChanges()); n != int(w.Done) {
			t.Errorf("refused %s: %d changes for %d jobs", test.name, n, w.Done)
		}
		if _, o := e.TubeStats(0, []byte("to")); (o == OK) != (w.Done > 0) {
			t.Errorf("refused %s: the tube it was for: %v", test.name, o)
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
	}
}

// A sweep of a missing tube or of an invalid state is refused.
func TestSweepOfMissingTube(t *testing.T) {
	e, _, _ := eachState(Options{}, 0)
	for _, test := range []struct {
		from, to string
		state    State
	}{{"none", "", Ready}, {"none", "to", Ready}, {"work", "", Reserved}, {"work", "to", Reserved}, {"work", "work", Ready}} {
		_, o := e.BeginClear([]byte(test.from), test.state, 0)
		if test.to != "" {
			_, o = e.BeginMove([]byte(test.from), []byte(test.to), test.state, 0)
		}
		if o != NotFound {
			t.Errorf("%+v: %v", test, o)
		}
	}
}

// In one turn, a move logs a limited number of bytes, even if the jobs are large. The
// remaining jobs wait until these bytes are durable. Small jobs need no additional turns.
func TestMoveLogsLittleInATurn(t *testing.T) {
	for _, test := range []struct{ body, jobs, turns int }{
		{64, 5 * maxLoggedSlice, 6},
		{1 << 10, 1000, 8},
		{50_000, 30, 11},
		{maxLogged, 5, 6},
	} {
		e := New(Options{Logged: true})
		s := e.Open(nil)
		e.Use(s, []byte("from"))
		for range test.jobs {
			e.Put(0, s, Spec{}, make([]byte, test.body))
		}
		e.TakeChanges()
		w, _ := e.BeginMove([]byte("from"), []byte("to"), Ready, 0)
		turns := 0
		for more := true; more; turns++ {
			e.Tick(0)
			more = e.ContinueSweep(0, &w)
			logged := 0
			for _, c := range e.TakeChanges() {
				logged += c.BodyLen
			}
			if logged >= maxLogged+test.body {
				t.Errorf("bodies of %d bytes: a turn logged %d bytes", test.body, logged)
			}
		}
		if w.Done != uint64(test.jobs) || turns != test.turns {
			t.Errorf("bodies of %d bytes: %d jobs in %d turns, want %d in %d", test.body, w.Done, turns, test.jobs, test.turns)
		}
	}
}
