package engine

import "testing"

// With one attempt a reservation is a Change, whoever makes it, and an engine that restores the job does not
// reserve it: it is exhausted, until it is kicked.
func TestAtMostOnce(t *testing.T) {
	policies := everyTube(Policy{MaxAttempts: 1})
	for name, reserve := range map[string]func(e *Engine, s *Session) bool{
		"reserve": func(e *Engine, s *Session) bool { _, o := e.Reserve(0, s, 0); return o == OK },
		"batch":   func(e *Engine, s *Session) bool { jobs, _ := e.ReserveBatch(0, s, 0, 2, nil); return len(jobs) == 1 },
		"job":     func(e *Engine, s *Session) bool { _, o := e.ReserveJob(0, s, 1); return o == OK },
		"indexed": func(e *Engine, s *Session) bool {
			e.indexAbove = 1
			e.Watch(s, []byte("other"))
			_, o := e.Reserve(0, s, 0)
			return o == OK
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{Logged: true, Policies: policies})
			s := e.Open(nil)
			e.Put(0, s, Spec{TTR: 5}, nil)
			log := e.TakeChanges()
			if !reserve(e, s) || e.Promises() != 1 {
				t.Fatalf("it is not reserved, or with %d changes", e.Promises())
			}
			after := New(Options{Logged: true, Policies: policies})
			restoreAll(after, append(log, e.TakeChanges()...))
			all, got := servedWorkers(after, 2)
			after.Reserve(0, all[0].s, Forever)
			if _, o := after.ReserveJob(0, all[1].s, 1); o != NotFound || len(*got) > 0 || after.Stats().Buried != 1 {
				t.Errorf("%v, got %q, %+v", o, *got, after.Stats())
			}
			if _, o := after.ReserveJob(0, all[1].s, 1); o != NotFound {
				t.Errorf("a buried job that has had its attempt: %v", o)
			}
			after.TakeChanges()
			after.KickJob(0, 1)
			if len(*got) != 1 || after.Promises() != 2 {
				t.Errorf("after a kick: got %q, %d changes", *got, after.Promises())
			}
		})
	}
}

// Nobody is given a job whose reservation the Log refuses, and nobody is refused others.
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
