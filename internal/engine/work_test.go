package engine

import (
	"runtime"
	"slices"
	"testing"
	"weak"
)

// Each command adds its work, in jobs or bytes, to the turn's work. Tick resets the sum.
func TestSpent(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(e *Engine, s *Session)
	}{
		{"many puts", func(e *Engine, s *Session) {
			for range maxTurnWork {
				e.Put(0, s, Spec{}, nil)
			}
		}},
		{"a long body", func(e *Engine, s *Session) {
			e.Put(0, s, Spec{}, make([]byte, maxTurnWork*bytesPerUnit))
		}},
		{"to read long bodies", func(e *Engine, s *Session) {
			id, _ := e.Put(0, s, Spec{}, make([]byte, maxTurnWork*bytesPerUnit/2))
			e.Tick(0)
			e.Peek(id)
			e.ReserveJob(0, s, id)
		}},
		{"surveying many tubes", func(e *Engine, s *Session) {
			for k := range 63 {
				e.Watch(s, []byte{'a' + byte(k)})
			}
			for range maxTurnWork * stepsPerUnit / 64 {
				e.Reserve(0, s, 0)
			}
		}},
		{"looking up ids", func(e *Engine, s *Session) {
			d := DeleteBatch{IDs: make([]uint64, maxTurnWork*idsPerUnit)}
			for e.ContinueDeleteBatch(s, &d) {
			}
		}},
	} {
		e := New(Options{})
		s := e.Open(nil)
		if e.Spent() {
			t.Errorf("%s: the turn is over before it", test.name)
		}
		test.do(e, s)
		if !e.Spent() {
			t.Errorf("%s is only %d units of work", test.name, e.turnWork)
		}
		if e.Tick(0); e.Spent() {
			t.Errorf("%s: the next turn has no work left at its start", test.name)
		}
	}
}

// In each turn, each of many long operations makes some progress, even if the turn has
// little work left.
func TestLongOperationsShareATurn(t *testing.T) {
	const kickers, each = 200, 1000
	e := New(Options{})
	sessions := make([]*Session, kickers)
	kicks := make([]Sweep, kickers)
	for k := range sessions {
		s := e.Open(nil)
		e.Use(s, []byte{'a' + byte(k%20), byte(k / 20)})
		for range each {
			e.Put(0, s, Spec{Delay: 9}, nil)
		}
		sessions[k], kicks[k] = s, e.BeginKick(s, each)
	}
	e.Tick(0)
	for k := range sessions {
		if more := e.ContinueSweep(0, &kicks[k]); !more || kicks[k].Done == 0 {
			t.Errorf("kick number %d: more %v, %d kicked", k, more, kicks[k].Done)
		}
	}
	if most := maxTurnWork + kickers*minSlice*3; e.turnWork > most {
		t.Errorf("the turn did %d units of work, more than %d", e.turnWork, most)
	}
}

// When the turn has done twice its work, each kick of jobs with expensive keys processes
// one more job.
func TestKicksOfLargeBodiesShareATurn(t *testing.T) {
	const kickers, each, units = 50, 10, 1000
	e := New(Options{Policies: PolicyFunc(func(string) *Policy { return &Policy{Unique: byBody} })})
	kicks := make([]Sweep, kickers)
	for k := range kicks {
		s := e.Open(nil)
		e.Use(s, []byte{'a' + byte(k%20), byte(k / 20)})
		e.Watch(s, []byte(s.Using()))
		for n := range each {
			id, _ := e.Put(0, s, Spec{TTR: 9}, slices.Concat([]byte{byte(n)}, make([]byte, units*keyBytesPerUnit)))
			e.ReserveJob(0, s, id)
			e.Bury(s, id, 0)
		}
		kicks[k] = e.BeginKick(s, each)
	}
	e.Tick(0)
	for k := range kicks {
		if more := e.ContinueSweep(0, &kicks[k]); !more || kicks[k].Done == 0 {
			t.Errorf("kick number %d: more %v, %d kicked", k, more, kicks[k].Done)
		}
	}
	if most := 2*maxTurnWork + kickers*(units+2); e.turnWork > most {
		t.Errorf("the turn did %d units of work, more than %d", e.turnWork, most)
	}
}

// If many sessions wait for a paused tube, its pause ends in slices. The sessions are
// served in the order of their waits, even if they watch many tubes, and before later
// sessions.
func TestPauseEndsInSlices(t *testing.T) {
	const workers, jobs = 5000, 4500
	for _, ends := range []string{"at its end", "by a command"} {
		e := New(Options{})
		p := e.Open(nil)
		e.Pause(0, []byte(DefaultTube), 1)
		var got []uint64
		for k := range workers {
			s := e.Open(hearing(func(j Job, _ Outcome) { got = append(got, j.ID) }))
			for n := range k % 4 {
				e.Watch(s, []byte{'a' + byte(n)})
			}
			e.Reserve(0, s, Forever)
		}
		for range jobs {
			e.Put(0, p, Spec{TTR: 100}, nil)
		}
		if ends == "by a command" {
			e.Tick(0)
			e.Pause(0, []byte(DefaultTube), 0)
		}
		turns := 1
		for ; e.Next() <= second; turns++ {
			e.Tick(second)
			if e.Spent() {
				t.Fatalf("%s: a turn did %d units of work", ends, e.turnWork)
			}
			if err := e.Check(); err != nil {
				t.Fatal(err)
			}
			if st, _ := e.TubeStats(second, []byte(DefaultTube)); st.Pause != 0 {
				t.Errorf("%s: still paused for %d s", ends, st.Pause)
			}
			if st := e.Stats(); st.Ready > 0 {
				late := e.Open(nil)
				mustReserve(t, e, second, late, 0, TimedOut)
				e.Close(second, late)
			}
		}
		if turns < workers/maxTurnWork*2 || len(got) != jobs || !slices.IsSorted(got) {
			t.Errorf("%s: in %d turns %d jobs went to workers, in order: %v", ends, turns, len(got), slices.IsSorted(got))
		}
	}
}

type hearing func(Job, Outcome)

func (h hearing) WaitOver(j Job, o Outcome) { h(j, o) }

// After the changes are written, the engine has its own copy of a body, and nothing
// refers to the caller's copy.
func TestTakeKeepsNoBody(t *testing.T) {
	e := New(Options{Logged: true})
	s := e.Open(nil)
	for range 10 {
		body := make([]byte, 1<<20)
		p := weak.Make(&body[0])
		id, _ := e.Put(0, s, Spec{}, body)
		changes := e.TakeChanges()
		if len(changes) != 1 || &changes[0].Body[0] != &body[0] {
			t.Fatalf("changes are %d", len(changes))
		}
		e.RecycleChanges(changes)
		body = nil
		runtime.GC()
		if p.Value() != nil {
			t.Error("the body is still referred to")
		}
		e.Delete(s, id)
		e.RecycleChanges(e.TakeChanges())
	}
}
