package engine

import (
	"fmt"
	"slices"
	"testing"
)

// A turn starts at each of these times, in seconds.
func TestTimes(t *testing.T) {
	ticked := func(e *Engine, at int64) int64 {
		e.Tick(at * second)
		return at * second
	}
	spec := Spec{TTR: 100}
	for _, c := range []struct {
		name        string
		do          func(e *Engine, s *Session)
		queue, work Total
	}{
		{"put, reserve, delete", func(e *Engine, s *Session) {
			id, _ := e.Put(ticked(e, 1), s, spec, nil)
			e.Reserve(ticked(e, 4), s, 0)
			ticked(e, 9)
			e.Delete(s, id)
		}, Total{1, 3e9}, Total{1, 5e9}},
		{"time delayed is not time in the queue", func(e *Engine, s *Session) {
			e.Put(ticked(e, 1), s, Spec{TTR: 100, Delay: 10}, nil)
			e.Reserve(ticked(e, 13), s, 0) // the job was due at 11
		}, Total{1, 2e9}, Total{}},
		{"time buried is not time in the queue, and touches do not restart the work", func(e *Engine, s *Session) {
			id, _ := e.Put(ticked(e, 0), s, spec, nil)
			e.Reserve(ticked(e, 1), s, 0)
			e.Touch(ticked(e, 5), s, id)
			e.Touch(ticked(e, 7), s, id)
			ticked(e, 10)
			e.Bury(s, id, 0)
			e.KickJob(ticked(e, 20), id)
			e.Reserve(ticked(e, 24), s, 0)
		}, Total{2, 5e9}, Total{1, 9e9}},
		{"a release ends the work, and begins the time in the queue", func(e *Engine, s *Session) {
			id, _ := e.Put(ticked(e, 0), s, spec, nil)
			e.Reserve(ticked(e, 0), s, 0)
			e.Touch(ticked(e, 1), s, id)
			e.Release(ticked(e, 6), s, id, 0, 0)
			e.Reserve(ticked(e, 8), s, 0)
			e.Release(ticked(e, 9), s, id, 0, 5)
		}, Total{2, 2e9}, Total{2, 7e9}},
		{"a TTR that runs out is no work, but the job is in the queue again", func(e *Engine, s *Session) {
			id, _ := e.Put(ticked(e, 0), s, Spec{TTR: 10}, nil)
			e.Reserve(ticked(e, 0), s, 0)
			e.Touch(ticked(e, 5), s, id)
			ticked(e, 15)
			e.Reserve(ticked(e, 18), s, 0)
		}, Total{2, 3e9}, Total{}},
		{"the deletion of a ready job is no work", func(e *Engine, s *Session) {
			id, _ := e.Put(ticked(e, 0), s, spec, nil)
			ticked(e, 5)
			e.Delete(s, id)
		}, Total{}, Total{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := New(Options{})
			s := e.Open(nil)
			measured := e.MeasureTube([]byte(DefaultTube), true)
			c.do(e, s)
			if err := e.Check(); err != nil {
				t.Error(err)
			}
			for name, times := range map[string]*Times{"queue": e.Times(), "tube": measured} {
				if got := totalOf(&times.Queue); got != c.queue {
					t.Errorf("%s: in the queue: %+v, want %+v", name, got, c.queue)
				}
				if got := totalOf(&times.Work); got != c.work {
					t.Errorf("%s: in work: %+v, want %+v", name, got, c.work)
				}
			}
			if e.MeasureTube([]byte(DefaultTube), true) != measured || e.MeasureTube([]byte(DefaultTube), false) != nil || e.MeasureTube([]byte("none"), true) != nil {
				t.Error("a tube is measured again, still measured, or missing")
			}
			if st, _ := e.TubeStats(e.now, []byte(DefaultTube)); st.Queued != c.queue || st.Worked != c.work {
				t.Errorf("the tube has %+v and %+v", st.Queued, st.Worked)
			}
		})
	}
}

// The time in the queue counts from the time when a job last became ready, not from its
// put, for example if the job was delayed, released or kicked.
func TestOldestReady(t *testing.T) {
	e := New(Options{})
	s := e.Open(nil)
	oldest := func(now int64) int64 {
		e.Tick(now * second)
		st, _ := e.TubeStats(now*second, []byte(DefaultTube))
		return st.OldestReady / second
	}
	expect := func(now, want int64) {
		t.Helper()
		if got := oldest(now); got != want {
			t.Errorf("at %d s the next job is ready for %d s, want %d", now, got, want)
		}
	}
	expect(0, 0)
	id, _ := e.Put(0, s, Spec{Delay: 100, TTR: 60}, nil)
	expect(50, 0)
	expect(107, 7)
	e.Reserve(110*second, s, 0)
	expect(115, 0)
	e.Release(120*second, s, id, 0, 0)
	expect(121, 1)
	e.Reserve(130*second, s, 0)
	e.Release(131*second, s, id, 0, 20)
	expect(152, 1)
	e.BuryJob(id, 0)
	expect(160, 0)
	e.KickJob(170*second, id)
	expect(173, 3)
}

// The log does not contain the time at which a job became ready. The time is known if the
// job was never reserved or kicked. In other cases the time in the queue counts from the
// start of the server.
func TestRestoredTimes(t *testing.T) {
	for _, c := range []struct {
		change Change
		want   int64 // seconds in the queue, at time 5 s
	}{
		{Change{State: Ready, Created: -30 * second}, 35},
		{Change{State: Ready, Created: -30 * second, Delay: 20}, 15},
		{Change{State: Ready, Created: -30 * second, Counts: Counts{Reserves: 1, Releases: 1}}, 5},
		{Change{State: Ready, Created: -30 * second, Delay: 100, Counts: Counts{Kicks: 1}}, 5},
		{Change{State: Delayed, Created: -30 * second, Delay: 20, Due: -10 * second}, 15},
	} {
		e := New(Options{})
		c.change.Kind, c.change.ID, c.change.TTR, c.change.Tube = JobPut, 1, 60, DefaultTube
		e.Restore(c.change)
		s := e.Open(nil)
		e.Tick(5 * second)
		_, o := e.Reserve(5*second, s, 0)
		if o != OK {
			t.Fatal(o)
		}
		if got := totalOf(&e.Times().Queue); got != (Total{1, float64(c.want * second)}) {
			t.Errorf("%+v was in the queue for %+v, want %d s", c.change, got, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	var told []string
	reached := func(l Limit, tube string) { told = append(told, fmt.Sprint(l, " ", tube)) }
	small := tubeBytes + int64(len("small"))
	limits := Limits{Tubes: 3, Watches: 2, Memory: small + 10*memoryOf(0), Tube: func(name string) TubeLimits {
		if name == "small" {
			return TubeLimits{Jobs: 1}
		}
		return TubeLimits{}
	}}
	e := New(Options{LimitReached: reached, Limits: limits})
	s := e.Open(nil)
	want := func(r Refusals) {
		t.Helper()
		if e.Refusals() != r {
			t.Errorf("refused %+v, want %+v", e.Refusals(), r)
		}
	}
	e.Use(s, []byte("small"))
	for range 3 {
		e.Put(0, s, Spec{}, nil)
	}
	want(Refusals{TubeJobsLimit: 2})
	e.Use(s, []byte(DefaultTube))
	for range 12 {
		e.Put(0, s, Spec{}, nil)
	}
	want(Refusals{TubeJobsLimit: 2, MemoryLimit: 3})
	e.Watch(s, []byte("third"))
	want(Refusals{TubeJobsLimit: 2, MemoryLimit: 4})
	limits.Memory = 0
	e.SetLimits(limits)
	e.Watch(s, []byte("third"))
	e.Watch(s, []byte("small"))
	want(Refusals{TubeJobsLimit: 2, MemoryLimit: 4, WatchesLimit: 1})
	e.Use(s, []byte("fourth"))
	want(Refusals{TubeJobsLimit: 2, MemoryLimit: 4, WatchesLimit: 1, TubesLimit: 1})
	wantTold := []string{
		"[[limit]] jobs small", "[[limit]] jobs small", "max-memory default", "max-memory default", "max-memory default", "max-memory third", "max-watched small", "max-tubes fourth",
	}
	if !slices.Equal(told, wantTold) {
		t.Errorf("events %q, want %q", told, wantTold)
	}
}
