package engine

import (
	"maps"
	"slices"
	"testing"
)

// If a policy permits one attempt, each reservation is a Change. After a restore the job
// is exhausted, so no session can reserve it before it is kicked.
func TestAtMostOnce(t *testing.T) {
	policies := everyTube(Policy{MaxAttempts: 1})
	for name, reserve := range map[string]func(e *Engine, s *Session) bool{
		"reserve": func(e *Engine, s *Session) bool { _, o := e.Reserve(0, s, 0); return o == OK },
		"batch":   func(e *Engine, s *Session) bool { jobs, _ := e.ReserveBatch(0, s, 0, 2, nil); return len(jobs) == 1 },
		"job":     func(e *Engine, s *Session) bool { _, o := e.ReserveJob(0, s, 1); return o == OK },
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{Logged: true, Policies: policies})
			s := e.Open(nil)
			e.Put(0, s, Spec{TTR: 5}, nil)
			log := e.TakeChanges()
			if !reserve(e, s) || e.Promises() != 1 {
				t.Fatalf("the job was not reserved, or with %d changes", e.Promises())
			}
			after := New(Options{Logged: true, Policies: policies})
			restoreAll(after, append(log, e.TakeChanges()...))
			all, got := servedWorkers(after, 2)
			after.Reserve(0, all[0].s, Forever)
			if _, o := after.ReserveJob(0, all[1].s, 1); o != NotFound || len(*got) > 0 || after.Stats().Buried != 1 {
				t.Errorf("%v, got %q, %+v", o, *got, after.Stats())
			}
			if _, o := after.ReserveJob(0, all[1].s, 1); o != NotFound {
				t.Errorf("a buried job that has used its attempt: %v", o)
			}
			after.TakeChanges()
			after.KickJob(0, 1)
			if len(*got) != 1 || after.Promises() != 2 {
				t.Errorf("after a kick: got %q, %d changes", *got, after.Promises())
			}
		})
	}
}

// No session gets a job whose reservation the Log refuses, and other jobs are still
// served.
func TestAtMostOnceRefused(t *testing.T) {
	full := true
	e := New(Options{Logged: true, Policies: PolicyFunc(func(tube string) *Policy {
		return map[string]*Policy{"once": {MaxAttempts: 1}}[tube]
	}), Admit: func(kind ChangeKind, _ string, _ int) Outcome {
		if full && kind == JobState {
			return OutOfMemory
		}
		return OK
	}})
	all, got := servedWorkers(e, 3)
	for _, w := range all {
		e.Watch(w.s, []byte("once"))
	}
	e.PutInto(0, []byte("once"), Spec{TTR: 100}, nil)
	e.PutInto(0, []byte("default"), Spec{TTR: 100, Pri: 9}, nil)
	if job, o := e.Reserve(0, all[0].s, 0); o != OK || job.ID != 2 {
		t.Errorf("%v of job %d", o, job.ID)
	}
	if _, o := e.ReserveJob(0, all[0].s, 1); o != OutOfMemory {
		t.Errorf("reserve-job: %v", o)
	}
	e.Reserve(0, all[1].s, Forever)
	if runTo(t, e, 5*second/2); len(*got) > 0 || e.PolicyCounts()[PolicySkipped] == 0 {
		t.Errorf("got %q, counts %v", *got, e.PolicyCounts())
	}
	full = false
	if runTo(t, e, 4*second); len(*got) != 1 {
		t.Errorf("got %q", *got)
	}
}

// If a job was reserved before its tube's policy limited jobs to one attempt, that
// reservation is the attempt once the change is settled, even in an engine that restores
// the job.
func TestAtMostOnceSetLate(t *testing.T) {
	for _, pattern := range []string{DefaultTube, "*"} {
		for name, attempt := range map[string]func(e *Engine, s *Session){
			"reserved": func(*Engine, *Session) {},
			"timeout":  func(e *Engine, s *Session) { e.Tick(6 * second) },
			"lost":     func(e *Engine, s *Session) { e.Close(0, s) },
		} {
			t.Run(pattern+" "+name, func(t *testing.T) {
				e := New(Options{Logged: true, Policies: texts{}})
				e.slice = 1
				s := e.Open(nil)
				const n = 3
				for range n {
					e.Put(0, s, Spec{TTR: 5}, nil)
					e.Reserve(0, s, 0)
				}
				e.PutInto(0, []byte("other"), Spec{TTR: 5}, nil)
				attempt(e, s)
				if o := e.SetPolicy(pattern, "once"); o != OK {
					t.Fatal(o)
				}
				turns := 0
				for done, o := e.Settled(); !done; done, o = e.Settled() {
					if e.Tick(e.now); o != OK {
						t.Fatal(o)
					}
					turns++
				}
				after := New(Options{Logged: true, Policies: texts{}})
				restoreAll(after, e.TakeChanges())
				after.Tick(7 * second)
				if job, o := after.Reserve(7*second, after.Open(nil), 0); o != TimedOut {
					t.Errorf("job %d is reserved a second time after a restart: %v", job.ID, o)
				}
				if name == "reserved" && turns < 2 { // otherwise the Log contains the attempts
					t.Errorf("%d turns for %d jobs", turns, n)
				}
			})
		}
	}
}

// texts implements policies in which the text "once" permits one attempt.
type texts map[string]bool

func (p texts) Of(tube string) *Policy {
	if p[tube] || p["*"] {
		return oneAttempt
	}
	return nil
}

var oneAttempt = &Policy{MaxAttempts: 1}

func (p texts) With(pattern, settings string) Policies {
	with := maps.Clone(p)
	if with == nil {
		with = texts{}
	}
	with[pattern] = settings == "once"
	return with
}

// A change of the policy fails if the Log refuses to record an attempt. The change can be
// repeated, and repeated changes of other policies do not delay it.
func TestAtMostOnceSetLateRefused(t *testing.T) {
	full := false
	e := New(Options{Logged: true, Policies: texts{}, Admit: func(kind ChangeKind, _ string, _ int) Outcome {
		if full && kind == JobState {
			return OutOfMemory
		}
		return OK
	}})
	s := e.Open(nil)
	e.Put(0, s, Spec{TTR: 5}, nil)
	e.Reserve(0, s, 0)
	settle := func() Outcome {
		e.SetPolicy(DefaultTube, "once")
		e.SetPolicy("other", "once")
		for range 100 {
			e.Tick(0)
			if done, o := e.Settled(); done {
				return o
			}
		}
		t.Fatal("the change is never settled")
		return OK
	}
	full = true
	if o := settle(); o == OK {
		t.Error("the change is settled without its record")
	}
	e.TakeChanges()
	full = false
	if o := settle(); o != OK || !slices.ContainsFunc(e.TakeChanges(), func(c Change) bool { return c.Kind == JobState && c.Reserves == 1 }) {
		t.Errorf("the attempt was not recorded: %v", o)
	}
}

// A kick of a delayed job that was never reserved grants no second attempt, but a kick of
// a buried job does.
func TestKickOfDelayedJob(t *testing.T) {
	e := New(Options{Policies: everyTube(Policy{MaxAttempts: 1})})
	s := e.Open(nil)
	e.Put(0, s, Spec{TTR: 5, Delay: 9}, nil)
	for range 3 {
		e.KickJob(0, 1)
		if _, o := e.Reserve(0, s, 0); o != OK {
			t.Fatal(o)
		}
		e.Release(0, s, 1, 0, 0)
		if st, _ := e.JobStats(0, 1); st.State != Buried {
			t.Fatalf("after its attempt the job is %v", st.State)
		}
		if _, o := e.ReserveJob(0, s, 1); o != NotFound {
			t.Fatalf("reserve-job of the buried job: %v", o)
		}
	}
}

// If a dead tube refuses a job, the job is buried in its own tube, and that tube
// continues to work.
func TestDeadTubeRefuses(t *testing.T) {
	for attempts := uint32(1); attempts < 3; attempts++ {
		for _, l := range []Limits{{Tube: func(name string) (l TubeLimits) {
			if name == "default.dead" {
				l.Jobs = 2
			}
			return l
		}}, {Tubes: 1}} {
			e := New(Options{Limits: l, Policies: everyTube(Policy{MaxAttempts: attempts, Exhausted: MoveExhausted, DeadTube: "{tube}.dead"})})
			s := e.Open(nil)
			const n = 8
			for range n {
				e.Put(0, s, Spec{TTR: 5}, nil)
			}
			for range n * int(attempts) {
				job, o := e.Reserve(0, s, 0)
				if o != OK {
					t.Fatalf("max-attempts=%d: %v", attempts, o)
				}
				e.Release(0, s, job.ID, 0, 0)
			}
			dead, _ := e.TubeStats(0, []byte("default.dead"))
			live, _ := e.TubeStats(0, []byte(DefaultTube))
			counts := e.PolicyCounts()
			if live.Gate != 0 || live.Ready > 0 || live.Buried+dead.Buried != n || counts[DeadTubeFull] != live.Buried || counts[OutOfAttempts] != n || counts[PolicySkipped] > 0 {
				t.Errorf("max-attempts=%d: %+v, dead %+v, %v", attempts, live, dead, counts)
			}
		}
	}
}

// If a tube is shut because the Log refuses to record an attempt, the tube's stats show
// the reason.
func TestGateByLog(t *testing.T) {
	full := true
	e := New(Options{Logged: true, Policies: everyTube(Policy{MaxAttempts: 1}), Admit: func(kind ChangeKind, _ string, _ int) Outcome {
		if full && kind == JobState {
			return OutOfMemory
		}
		return OK
	}})
	s := e.Open(nil)
	e.Put(0, s, Spec{TTR: 5}, nil)
	e.Reserve(0, s, 0)
	if st, _ := e.TubeStats(0, []byte(DefaultTube)); st.Gate != second || !st.GateByLog {
		t.Errorf("%+v", st)
	}
	full = false
	e.Tick(second)
	if st, _ := e.TubeStats(second, []byte(DefaultTube)); st.Gate != 0 || st.GateByLog {
		t.Errorf("%+v", st)
	}
}
