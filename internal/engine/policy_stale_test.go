package engine

import (
	"testing"
	"time"
)

// No session gets an expired job. It gets the next job, and the policy determines what
// happens to the expired one.
func TestExpired(t *testing.T) {
	for _, bury := range []bool{false, true} {
		var told []string
		e := New(Options{Policies: everyTube(Policy{TTL: 10 * second, BuryAtTTL: bury, KeepBuried: 20 * second}), PolicyActed: func(act PolicyAct) { told = append(told, act.Event.String()+" "+act.Tube) }})
		all, got := servedWorkers(e, 3)
		s := all[0].s
		old, _ := e.Put(0, s, Spec{TTR: 5}, nil)
		delayed, _ := e.Put(0, s, Spec{TTR: 5, Delay: 15}, nil)
		held, _ := e.Put(0, s, Spec{TTR: 100, Pri: 9}, nil)
		e.ReserveJob(0, all[1].s, held)
		runTo(t, e, 5*second)
		young, _ := e.Put(5*second, s, Spec{TTR: 5, Pri: 1}, nil)
		if job, o := e.Reserve(10*second, s, 0); o != OK || job.ID != young {
			t.Errorf("bury %v: job %d is reserved, %v", bury, job.ID, o)
		}
		if _, o := e.ReserveJob(10*second, s, delayed); o != NotFound {
			t.Errorf("bury %v: reserve-job returns an expired job: %v", bury, o)
		}
		if c := e.PolicyCounts(); len(told) != 2 || told[0] != "ttl default" || c.Expired() != 2 {
			t.Errorf("bury %v: events %q", bury, told)
		}
		_, o := e.ReserveJob(10*second, s, old)
		if want := NotFound; !bury && o != want || bury && o != OK {
			t.Errorf("bury %v: reserve-job of an ended job: %v", bury, o)
		}
		// A reserved job does not expire, but it expires when it is released.
		e.Reserve(11*second, all[2].s, Forever)
		e.Release(11*second, all[1].s, held, 0, 0)
		if runTo(t, e, 80*second); len(*got) > 0 || e.Stats().Waiting != 1 {
			t.Errorf("bury %v: got %q, %+v", bury, *got, e.Stats())
		}
		e.Close(80*second, s)
		if runTo(t, e, 150*second); e.Stats().Ready+e.Stats().Delayed+e.Stats().Buried > 0 {
			t.Errorf("bury %v: %+v", bury, e.Stats())
		}
	}
}

// The age of a job counts from its put, even after a restore.
func TestAgeIsRestored(t *testing.T) {
	e := New(Options{Logged: true})
	s := e.Open(nil)
	e.Put(-5*second, s, Spec{TTR: 5}, nil)
	e.Reserve(0, s, 0)
	e.Release(0, s, 1, 0, 0)
	after := New(Options{Policies: everyTube(Policy{TTL: 10 * second})})
	restoreAll(after, e.TakeChanges())
	w := after.Open(nil)
	if _, o := after.Reserve(5*second-1, w, 0); o != OK {
		t.Errorf("it is too old too soon: %v", o)
	}
	after.Release(5*second-1, w, 1, 0, 0)
	if _, o := after.Reserve(5*second, w, 0); o != TimedOut || after.Stats().Ready > 0 {
		t.Errorf("%v, %+v", o, after.Stats())
	}
}

// If many jobs expire at once, their removal takes many turns. During these turns no
// worker gets an expired job, and workers get other jobs.
func TestManyExpire(t *testing.T) {
	const n = 3 * slotsPerPage
	e := New(Options{Policies: PolicyFunc(func(tube string) *Policy {
		if tube == "old" {
			return &Policy{TTL: 100 * second}
		}
		return nil
	})})
	s := e.Open(nil)
	e.Use(s, []byte("old"))
	e.Watch(s, []byte("old"))
	for range n {
		e.Put(0, s, Spec{TTR: 5}, nil)
	}
	if e.Tick(0); e.Next() != 0+stalePass/3 {
		t.Errorf("the second of three pages is due at %v", time.Duration(e.Next()))
	}
	now, most := int64(1000*second), 0
	e.Tick(now)
	e.Put(now, s, Spec{TTR: 5}, nil)
	e.Put(now, e.Open(nil), Spec{TTR: 5, Pri: 2}, nil)
	if job, o := e.Reserve(now, s, 0); o != OK || job.ID != n+2 || e.byName["old"].gate.shut != true {
		t.Fatalf("%v of job %d: want the tube shut, and other tubes open", o, job.ID)
	}
	last := e.policyCounts.Expired()
	for turns := 0; e.Next() <= now+stalePass; turns++ {
		if e.Tick(max(now, e.Next())); turns > n {
			t.Fatal("it does not end")
		}
		ended := e.policyCounts.Expired()
		most, last = max(most, int(ended-last)), ended
	}
	if st, _ := e.TubeStats(now, []byte("old")); st.Ready != 1 || most > maxLoggedSlice {
		t.Errorf("%d are left, %d were ended in a turn", st.Ready, most)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
	if job, o := e.Reserve(now, s, 0); o != OK || job.ID != n+1 {
		t.Errorf("%v of job %d", o, job.ID)
	}
}

// Jobs put during a pass, on pages after the existing ones, are also visited within a
// pass.
func TestStaleJobsOfNewPages(t *testing.T) {
	e := New(Options{Policies: everyTube(Policy{TTL: 10 * second})})
	s := e.Open(nil)
	e.Put(0, s, Spec{Delay: 1000, TTR: 5}, nil)
	runTo(t, e, second)
	for range 20 * slotsPerPage {
		e.Put(second, s, Spec{Delay: 1000, TTR: 5}, nil)
	}
	if runTo(t, e, 11*second+stalePass+stalePass/16); e.Stats().Delayed > 0 {
		t.Errorf("%d jobs are left", e.Stats().Delayed)
	}
}

// If the Log refuses to record the end of an expired job, no worker gets the job. It ends
// when the Log has space.
func TestExpiredRefused(t *testing.T) {
	full := true
	e := New(Options{Logged: true, Policies: everyTube(Policy{TTL: second, BuryAtTTL: true}), Admit: func(kind ChangeKind, _ string, _ int) Outcome {
		if full && kind == JobState {
			return OutOfMemory
		}
		return OK
	}})
	all, got := servedWorkers(e, 1)
	e.Put(0, all[0].s, Spec{TTR: 5}, nil)
	runTo(t, e, 2*second)
	e.Put(2*second, all[0].s, Spec{TTR: 5}, nil)
	if _, o := e.Reserve(2*second, all[0].s, 5); o != Waiting {
		t.Fatalf("%v", o)
	}
	if runTo(t, e, 2*second+second/2); len(*got) > 0 || e.PolicyCounts()[PolicySkipped] == 0 {
		t.Errorf("got %q, counts %v", *got, e.PolicyCounts())
	}
	full = false
	if runTo(t, e, 4*second); len(*got) > 0 || e.Stats().Buried != 2 {
		t.Errorf("got %q, %+v", *got, e.Stats())
	}
}
