package engine

import (
	"fmt"
	"strings"
	"testing"
)

// view describes the visible state of an engine.
func view(e *Engine, now int64, sessions ...*Session) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v next %d\n", e.Stats(), e.Next())
	for _, name := range e.TubeNames().collect() {
		st, _ := e.TubeStats(now, []byte(name))
		fmt.Fprintf(&b, "%s %+v\n", name, st)
	}
	for id := range e.LastID() + 1 {
		if st, o := e.JobStats(now, id); o == OK {
			fmt.Fprintf(&b, "%+v\n", st)
		}
	}
	for _, s := range sessions {
		for _, state := range []State{Ready, Delayed, Buried} {
			j, o := e.PeekState(s, state)
			fmt.Fprintf(&b, "%v %d %v\n", state, j.ID, o)
		}
	}
	return b.String()
}

// A verb whose change is refused returns the error of Admit and has no other effect.
func TestAdmitRefuses(t *testing.T) {
	const now = 100 * second
	tests := []struct {
		name string
		kind ChangeKind
		body int
		do   func(e *Engine, s *Session) Outcome
	}{
		{"delete ready", JobDeleted, 5, func(e *Engine, s *Session) Outcome { return e.Delete(s, readyJob) }},
		{"delete delayed", JobDeleted, 5, func(e *Engine, s *Session) Outcome { return e.Delete(s, delayedJob) }},
		{"delete buried", JobDeleted, 5, func(e *Engine, s *Session) Outcome { return e.Delete(s, buriedJob) }},
		{"delete reserved", JobDeleted, 5, func(e *Engine, s *Session) Outcome { return e.Delete(s, myJob) }},
		{"release", JobState, 5, func(e *Engine, s *Session) Outcome { return e.Release(now, s, myJob, 9, 0) }},
		{"release delayed", JobState, 5, func(e *Engine, s *Session) Outcome { return e.Release(now, s, myJob, 9, 9) }},
		{"bury", JobState, 5, func(e *Engine, s *Session) Outcome { return e.Bury(s, myJob, 9) }},
		{"kick-job buried", JobState, 5, func(e *Engine, _ *Session) Outcome { return e.KickJob(now, buriedJob) }},
		{"kick-job delayed", JobState, 5, func(e *Engine, _ *Session) Outcome { return e.KickJob(now, delayedJob) }},
		{"pause-tube", TubePaused, 0, func(e *Engine, _ *Session) Outcome { return e.Pause(now, []byte("work"), 5) }},
		{"end pause", TubePaused, 0, func(e *Engine, _ *Session) Outcome { return e.Pause(now, []byte("work"), 0) }},
	}
	for _, test := range tests {
		for _, refusal := range []Outcome{OutOfMemory, Failed} {
			t.Run(test.name, func(t *testing.T) {
				var refuse bool
				var asked []string
				e, me, _ := eachState(Options{Logged: true, Admit: func(kind ChangeKind, tube string, body int) Outcome {
					if !refuse {
						return OK
					}
					asked = append(asked, fmt.Sprint(kind, tube, body))
					return refusal
				}}, now)
				e.TakeChanges()
				refuse = true
				before := view(e, now, me)
				if got := test.do(e, me); got != refusal {
					t.Fatalf("got %v, want %v", got, refusal)
				}
				if want := fmt.Sprint([]string{fmt.Sprint(test.kind, "work", test.body)}); fmt.Sprint(asked) != want {
					t.Errorf("asked %v, want %v", asked, want)
				}
				if after := view(e, now, me); after != before {
					t.Errorf("it was refused, but\n%s became\n%s", before, after)
				}
				if e.Promises() != 0 {
					t.Errorf("a refused change was emitted: %+v", e.TakeChanges())
				}
				if err := e.Check(); err != nil {
					t.Error(err)
				}
				refuse = false
				if got := test.do(e, me); got != OK {
					t.Errorf("admitted: outcome %v", got)
				}
				if e.Promises() != 1 {
					t.Errorf("%d changes were emitted, want 1", e.Promises())
				}
			})
		}
	}
}

// A refused put costs an id and makes its session a producer, as in beanstalkd.
func TestAdmitRefusesPut(t *testing.T) {
	e := New(Options{Logged: true, Admit: func(kind ChangeKind, tube string, body int) Outcome {
		if kind != JobPut || tube != "default" || body != 3 {
			t.Errorf("asked about %v %q %d", kind, tube, body)
		}
		return OutOfMemory
	}})
	s := e.Open(nil)
	if _, o := e.Put(0, s, Spec{}, []byte("abc")); o != OutOfMemory {
		t.Fatalf("got %v", o)
	}
	if got, want := e.Stats(), (Stats{Sessions: 1, TotalSessions: 1, Producers: 1, Tubes: 1}); got != want {
		t.Errorf("stats are %+v, want %+v", got, want)
	}
	if e.LastID() != 1 || e.Promises() != 0 {
		t.Errorf("last id %d, %d changes pending; want 1 and 0", e.LastID(), e.Promises())
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}

// A kick stops at the first refusal and reports the number of kicked jobs and the reason.
func TestAdmitStopsKick(t *testing.T) {
	for _, delay := range []uint32{0, 9} {
		room := 3
		e := New(Options{})
		s := e.Open(nil)
		for range 5 {
			id, _ := e.Put(0, s, Spec{Delay: delay}, nil)
			if delay == 0 {
				e.ReserveJob(0, s, id)
				e.Bury(s, id, 0)
			}
		}
		e.opt.Admit = func(ChangeKind, string, int) Outcome {
			if room--; room < 0 {
				return OutOfMemory
			}
			return OK
		}
		k := e.BeginKick(s, 1<<32-1)
		if more := e.ContinueSweep(0, &k); more || k.Done != 3 || k.Refused != OutOfMemory {
			t.Errorf("delay %d: more %v, %+v, want 3 kicked and one refused", delay, more, k)
		}
		if st := e.Stats(); st.Ready != 3 || st.Delayed+st.Buried != 2 {
			t.Errorf("delay %d: stats are %+v", delay, st)
		}
		if room != -1 {
			t.Errorf("delay %d: asked %d times after the first refusal", delay, -1-room)
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
	}
}
