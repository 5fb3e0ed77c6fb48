package engine

import (
	"fmt"
	"testing"
)

// A put that exceeds a limit is refused, and a delete makes space again.
func TestLimitsOfJobs(t *testing.T) {
	const size = 100
	body := make([]byte, size)
	const tubes = 2 * (tubeBytes + 1) // the memory of a and b
	everyTube := func(l TubeLimits) Limits { return Limits{Tube: func(string) TubeLimits { return l }} }
	for _, test := range []struct {
		name   string
		limits Limits
		most   int // maximum number of such jobs in one tube
		inAll  int // maximum number in two tubes

		refusal Outcome
	}{
		{"none", Limits{}, 10, 20, OK},
		{"memory", Limits{Memory: tubes + 5*memoryOf(size)}, 5, 5, OutOfMemory},
		{"memory, but a byte", Limits{Memory: tubes + 5*memoryOf(size) - 1}, 4, 4, OutOfMemory},
		{"jobs", everyTube(TubeLimits{Jobs: 3}), 3, 6, OutOfMemory},
		{"bytes", everyTube(TubeLimits{Bytes: 3*size + 99}), 3, 6, OutOfMemory},
		{"bytes of one", everyTube(TubeLimits{Bytes: size - 1}), 0, 0, TooBig},
		{"of another tube", Limits{Tube: func(name string) TubeLimits {
			if name == "b" {
				return TubeLimits{Jobs: 1}
			}
			return TubeLimits{}
		}}, 10, 11, OutOfMemory},
		{"bodies alone", Limits{Memory: size}, 0, 0, TooBig},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := New(Options{})
			s := e.Open(nil)
			for _, tube := range []string{"a", "b"} { // both tubes exist all the time
				e.Use(e.Open(nil), []byte(tube))
			}
			e.SetLimits(test.limits)
			fill := func(tube string) (n int) {
				e.Use(s, []byte(tube))
				for range 10 {
					before := e.LastID()
					id, o := e.Put(0, s, Spec{TTR: 9, Delay: uint32(n % 2)}, body)
					if (e.LastID() == before) != (o == TooBig) || (o == OK) != (id != 0) || o != OK && o != test.refusal {
						t.Fatalf("put: id %d, outcome %v, last id %d after %d", id, o, e.LastID(), before)
					}
					if o == OK {
						n++
					}
				}
				return n
			}
			n := fill("a")
			if n != test.most {
				t.Errorf("there was space for %d jobs, want %d", n, test.most)
			}
			if n += fill("b"); n != test.inAll {
				t.Errorf("there was space for %d jobs in two tubes, want %d", n, test.inAll)
			}
			if st := e.Stats(); st.Bytes != uint64(n*size) {
				t.Errorf("%d jobs have %d bytes", n, st.Bytes)
			}
			if used, limit := e.LimitedMemory(); used != tubes+int64(n)*memoryOf(size) || limit != test.limits.Memory {
				t.Errorf("%d jobs take %d bytes of %d", n, used, limit)
			}
			for id := range e.LastID() + 1 {
				if e.Delete(s, id) == OK && fill("a")+fill("b") == 0 {
					t.Errorf("no space after job %d was deleted", id)
				}
			}
			if err := e.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Existing jobs stay when limits become stricter, and can still change their state.
func TestTighterLimits(t *testing.T) {
	e, me, _ := eachState(Options{}, 0)
	e.SetLimits(Limits{Memory: 1, Tubes: 1, Watches: 1, Tube: func(string) TubeLimits { return TubeLimits{1, 1} }})
	if _, o := e.Put(0, me, Spec{}, nil); o != TooBig {
		t.Errorf("put: %v", o)
	}
	for name, o := range map[string]Outcome{
		"release": e.Release(0, me, myJob, 1, 1),
		"kick":    e.KickJob(0, buriedJob),
		"delete":  e.Delete(me, readyJob),
		"use":     e.Use(me, []byte("work")),
	} {
		if o != OK {
			t.Errorf("%s: %v", name, o)
		}
	}
	if j, o := e.Reserve(0, e.Open(nil), 0); o != TimedOut {
		t.Errorf("reserve from the tube default: job %d, %v", j.ID, o)
	}
	e.SetLimits(Limits{})
	if _, o := e.Put(0, me, Spec{}, nil); o != OK {
		t.Errorf("put without limits: %v", o)
	}
}

// Tubes are limited in total, and watched tubes per session. Existing tubes can still be
// used and watched.
func TestLimitsOfTubes(t *testing.T) {
	e := New(Options{Limits: Limits{Tubes: 4, Watches: 3}})
	s, other := e.Open(nil), e.Open(nil)
	for _, step := range []struct {
		verb, tube string
		want       string
	}{
		{"use", "a", "0"},
		{"watch", "a", "2 0"},
		{"watch", "b", "3 0"},
		{"watch", "c", "3 6"},
		{"watch", "b", "3 0"},
		{"ignore", "b", "2 true"},
		{"watch", "c", "3 0"},
		{"use", "d", "0"},
		{"use", "e", "6"},
		{"use", "c", "0"}, // d was removed
		{"use", "e", "0"},
	} {
		var got string
		switch name := []byte(step.tube); step.verb {
		case "use":
			got = fmt.Sprint(e.Use(s, name))
		case "watch":
			n, o := e.Watch(s, name)
			got = fmt.Sprint(n, o)
		case "ignore":
			n, ok := e.Ignore(s, name)
			got = fmt.Sprint(n, ok)
		}
		if got != step.want {
			t.Errorf("%s %s: %s, want %s", step.verb, step.tube, got, step.want)
		}
	}
	if _, o := e.Watch(other, []byte("f")); o != OutOfMemory {
		t.Errorf("a fifth tube: %v", o)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}

// Restore ignores the limits.
func TestRestoreIgnoresLimits(t *testing.T) {
	e := New(Options{Limits: Limits{Memory: 1, Tubes: 1}})
	e.Restore(Change{Kind: JobPut, ID: 7, State: Ready, TTR: 1, Tube: "a", Body: []byte("hello")})
	if st := e.Stats(); st.Ready != 1 || st.Tubes != 2 || st.Bytes != 5 {
		t.Errorf("stats are %+v", st)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}

// RefusedSince reports the limits that have refused something recently.
func TestRefusedSince(t *testing.T) {
	e := New(Options{Limits: Limits{Memory: 1, Tubes: 1}})
	s := e.Open(nil)
	e.Tick(5 * second)
	e.Put(5*second, s, Spec{TTR: 60}, nil)
	e.Tick(9 * second)
	e.Use(s, []byte("other"))
	for since, want := range map[int64]string{0: "[max-memory max-tubes]", 5: "[max-memory max-tubes]", 6: "[max-tubes]", 10: "[]"} {
		if got := fmt.Sprint(e.RefusedSince(since * second)); got != want {
			t.Errorf("since %d s: %s, want %s", since, got, want)
		}
	}
}

// A body that grows needs space like a put, but a body that shrinks does not. A refused
// change leaves the whole job unchanged.
func TestLimitsOfBodies(t *testing.T) {
	e := New(Options{Logged: true, Limits: Limits{Tube: func(string) TubeLimits { return TubeLimits{Bytes: 100} }}})
	s := e.Open(nil)
	id, _ := e.Put(0, s, Spec{TTR: 9}, make([]byte, 60))
	e.Put(0, s, Spec{TTR: 9}, make([]byte, 30))
	e.TakeChanges()
	alter := func(n int) Outcome {
		body := make([]byte, n)
		return e.AlterJob(1, id, Alteration{Body: &body, Pri: new(uint32(n))})
	}
	for _, test := range []struct {
		n    int
		want Outcome
	}{{70, OK}, {71, OutOfMemory}, {101, TooBig}, {10, OK}, {0, OK}} {
		before, _ := e.JobStats(0, id)
		if o := alter(test.n); o != test.want {
			t.Errorf("%d bytes: %v, want %v", test.n, o, test.want)
		}
		changes := e.TakeChanges()
		after, _ := e.JobStats(0, id)
		if test.want != OK {
			if after != before || len(changes) != 0 {
				t.Errorf("%+v, %+v, %v", before, after, changes)
			}
		} else if c := changes[0]; len(changes) != 1 || c.Kind != JobMoved || c.From != c.Tube || c.FromLen != int(before.Size) || len(c.Body) != test.n || after.Size != uint32(test.n) {
			t.Errorf("%+v", changes)
		}
	}
	e.SetLimits(Limits{Memory: 1})
	if o := alter(50); o != TooBig && o != OutOfMemory {
		t.Errorf("without memory: %v", o)
	}
	if o := alter(0); o != OK {
		t.Errorf("the same: %v", o)
	}
}

// Tubes count for the memory limit until they are removed, even if they are only watched.
// When jobs use all of the memory, tubes can use an eighth more, so that connecting
// workers can watch their tubes and delete jobs.
func TestTubesTakeMemory(t *testing.T) {
	const most, spare = 64, 64 / 8
	e := New(Options{Limits: Limits{Memory: most * (tubeBytes + 3)}})
	jobs, watcher := e.Open(nil), e.Open(nil)
	for o := OK; o == OK; {
		_, o = e.Put(0, jobs, Spec{TTR: 9}, nil)
	}
	watched := 0
	for e.Stats().Tubes < 2*most {
		if _, o := e.Watch(watcher, fmt.Appendf(nil, "%03d", watched)); o != OK {
			break
		}
		watched++
	}
	if watched != spare {
		t.Errorf("%d tubes when jobs take all memory, want %d", watched, spare)
	}
	if o := e.Use(jobs, []byte("new")); o != OutOfMemory || e.Use(jobs, []byte("000")) != OK {
		t.Errorf("a new tube: %v", o)
	}
	for id := range e.LastID() {
		e.Delete(jobs, id+1)
	}
	if used, _ := e.LimitedMemory(); used != spare*(tubeBytes+3) {
		t.Errorf("%d tubes take %d bytes", spare, used)
	}
	for range most - spare {
		e.Watch(watcher, fmt.Appendf(nil, "%03d", watched))
		watched++
	}
	if _, o := e.Put(0, jobs, Spec{TTR: 9}, nil); o != OutOfMemory {
		t.Errorf("a put when tubes take all memory: %v", o)
	}
	e.Close(0, watcher)
	e.Close(0, jobs)
	for e.Next() <= 0 {
		e.Tick(0)
	}
	if used, _ := e.LimitedMemory(); used != 0 || e.Check() != nil {
		t.Errorf("an empty engine takes %d bytes: %v", used, e.Check())
	}
}
