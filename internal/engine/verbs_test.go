package engine

import (
	"testing"
)

// These are the jobs that eachState puts into the tube "work".
const (
	readyJob uint64 = 1 + iota
	delayedJob
	buriedJob
	myJob    // reserved by me
	theirJob // reserved by the other session
	noJob    // never existed
)

// eachState returns an engine with a job in each state and a second session.
func eachState(opt Options, now int64) (e *Engine, me, other *Session) {
	e = New(opt)
	me, other = e.Open(nil), e.Open(nil)
	e.Use(me, []byte("work"))
	for id := readyJob; id < noJob; id++ {
		spec := Spec{Pri: 10, TTR: 60}
		if id == delayedJob {
			spec.Delay = 30
		}
		e.Put(now, me, spec, []byte("hello"))
	}
	e.ReserveJob(now, me, buriedJob)
	e.Bury(me, buriedJob, 10)
	e.ReserveJob(now, me, myJob)
	e.ReserveJob(now, other, theirJob)
	return e, me, other
}

func mustReserve(t *testing.T, e *Engine, now int64, s *Session, timeout int64, want Outcome) uint64 {
	t.Helper()
	j, o := e.Reserve(now, s, timeout)
	if o != want {
		t.Fatalf("reserve: %v, want %v", o, want)
	}
	return j.ID
}

// A Tick does a limited amount of work. Until all events are processed, the next Tick is
// due at once, and other commands work.
func TestTickLimit(t *testing.T) {
	const n = 10000
	e := New(Options{})
	s := e.Open(nil)
	for range n {
		e.Put(0, s, Spec{Delay: 1, TTR: 100}, nil)
	}
	ticks := 0
	for e.Stats().Delayed > 0 {
		if e.Next() != second {
			t.Fatalf("%d are due, but next is %d", e.Stats().Delayed, e.Next())
		}
		before := e.Stats()
		e.Tick(second)
		ticks++
		if done := before.Delayed - e.Stats().Delayed; done == 0 || e.turnWork > maxTurnWork/tickShare+2 || e.Spent() {
			t.Fatalf("one tick did %d and %d units of work", done, e.turnWork)
		}
		id := mustReserve(t, e, second, s, 0, OK)
		if o := e.Delete(s, id); o != OK {
			t.Fatalf("delete: %v", o)
		}
		if id, o := e.Put(second, s, Spec{Pri: 9, Delay: 50}, nil); o != OK || e.Delete(s, id) != OK {
			t.Fatalf("put and delete: %v", o)
		}
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if ticks < n*2/maxTurnWork {
		t.Errorf("%d jobs became due in %d ticks", n, ticks)
	}
	if e.Tick(second); e.Next() <= second {
		t.Errorf("all is done, but next is %d", e.Next())
	}
}

// A worker that waits does not get a job that is put buried.
func TestPutBuried(t *testing.T) {
	e := New(Options{})
	all, _ := servedWorkers(e, 1)
	e.Reserve(0, all[0].s, Forever)
	id, o := e.PutInto(0, []byte("default"), Spec{Buried: true}, nil)
	st, _ := e.JobStats(0, id)
	if o != OK || st.State != Buried || st.Delay != 0 || st.Reserves != 0 {
		t.Errorf("%v, %+v", o, st)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}
