package engine

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// A servedWorker waits for jobs of the default tube, and records the time of each job.
type servedWorker struct {
	e    *Engine
	s    *Session
	name int
	got  *[]string
}

func (w *servedWorker) WaitOver(job Job, o Outcome) {
	*w.got = append(*w.got, fmt.Sprintf("%d:%d@%dms", w.name, job.ID, w.e.now/1e6))
}

func servedWorkers(e *Engine, n int) (all []*servedWorker, got *[]string) {
	got = new([]string)
	for i := range n {
		w := &servedWorker{e: e, name: i + 1, got: got}
		w.s = e.Open(w)
		all = append(all, w)
	}
	return all, got
}

// runTo advances the time, and runs each event when it is due.
func runTo(t *testing.T, e *Engine, until int64) {
	t.Helper()
	for n := 0; e.Next() <= until; n++ {
		if e.Tick(max(e.Next(), e.now)); n > 10000 {
			t.Fatal("the engine wants ever more turns")
		}
	}
	e.Tick(until)
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
}

// Workers get jobs at the rate of the tube, first come, first served.
func TestRate(t *testing.T) {
	e := New(Options{Policies: everyTube(Policy{Interval: second / 2, Burst: 2})})
	all, got := servedWorkers(e, 5)
	for _, w := range all {
		e.Reserve(0, w.s, Forever)
	}
	for range 5 {
		e.Put(0, all[0].s, Spec{TTR: 100}, nil)
	}
	runTo(t, e, 10*second)
	if want := []string{"1:1@0ms", "2:2@0ms", "3:3@500ms", "4:4@1000ms", "5:5@1500ms"}; !slices.Equal(*got, want) {
		t.Errorf("got %q, want %q", *got, want)
	}
	for range 3 {
		e.Put(10*second, all[0].s, Spec{TTR: 100}, nil)
	}
	var outcomes []Outcome
	for range 3 {
		_, o := e.Reserve(10*second, all[0].s, 0)
		outcomes = append(outcomes, o)
	}
	if want := []Outcome{OK, OK, TimedOut}; !slices.Equal(outcomes, want) {
		t.Errorf("after a pause: %v, want %v", outcomes, want)
	}
	if st, _ := e.TubeStats(10*second+1, []byte(DefaultTube)); st.Gate != second/2-1 {
		t.Errorf("the gate opens in %d ns", st.Gate)
	}
}

// The number of reserved jobs never exceeds the policy's limit, and when a reservation
// ends, the session that has waited longest gets the next job.
func TestMaxReserved(t *testing.T) {
	policy := Policy{MaxReserved: 2}
	e := New(Options{Policies: everyTube(policy)})
	all, got := servedWorkers(e, 6)
	for range 9 {
		e.Put(0, all[0].s, Spec{TTR: 5}, nil)
	}
	first, _ := e.Reserve(0, all[0].s, 0)
	e.Reserve(0, all[1].s, 0)
	for _, w := range all[2:] {
		if _, o := e.Reserve(0, w.s, Forever); o != Waiting {
			t.Fatalf("a third job is reserved: %v", o)
		}
	}
	if st, _ := e.TubeStats(0, []byte(DefaultTube)); st.Gate != Never {
		t.Errorf("the gate opens in %d ns", st.Gate)
	}
	if e.Stats().Reserved != 2 {
		t.Errorf("%d are reserved", e.Stats().Reserved)
	}
	e.Delete(all[0].s, first.ID)
	if _, o := e.Reserve(0, all[0].s, 0); o != DeadlineSoon && o != TimedOut {
		t.Errorf("a later session was served before a waiting one: %v", o)
	}
	runTo(t, e, second)
	e.Close(second, all[1].s)
	runTo(t, e, 2*second)
	if want := []string{"3:3@0ms", "4:2@1000ms"}; !slices.Equal(*got, want) {
		t.Errorf("got %q, want %q", *got, want)
	}
	policy.MaxReserved = 3
	e.SetPolicies(everyTube(policy))
	runTo(t, e, 2*second)
	e.SetPolicies(PolicyFunc(func(string) *Policy { return nil }))
	runTo(t, e, 2*second)
	if want := []string{"3:3@0ms", "4:2@1000ms", "5:4@2000ms", "6:5@2000ms"}; !slices.Equal(*got, want) {
		t.Errorf("with a higher limit: got %q, want %q", *got, want)
	}
}

// A gate that opens for very many workers takes several turns, and later workers are
// served after these.
func TestGateOpensInSlices(t *testing.T) {
	e := New(Options{Policies: everyTube(Policy{MaxReserved: 1})})
	e.workLimit = 400
	const n = 1000
	all, got := servedWorkers(e, n)
	for range n {
		e.Put(0, all[0].s, Spec{TTR: 100}, nil)
	}
	holder := e.Open(nil)
	e.Reserve(0, holder, 0)
	for _, w := range all[1:] {
		e.Reserve(0, w.s, Forever)
	}
	e.SetPolicies(everyTube(Policy{MaxReserved: n}))
	turns := 0
	for ; e.Next() <= 0; turns++ {
		e.Tick(0)
		if late, o := e.Reserve(0, all[0].s, 0); o == OK && len(*got) < n-1 {
			t.Fatalf("job %d went to a later worker, after %d workers", late.ID, len(*got))
		}
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if len(*got) != n-1 || turns < 10 {
		t.Errorf("%d workers were served in %d turns", len(*got), turns)
	}
}

// A pause and a gate each keep a tube's jobs from workers.
func TestGateAndPause(t *testing.T) {
	e := New(Options{Policies: everyTube(Policy{Interval: 10 * second, Burst: 1})})
	all, got := servedWorkers(e, 2)
	e.Put(0, all[0].s, Spec{TTR: 100}, nil)
	e.Put(0, all[0].s, Spec{TTR: 100}, nil)
	e.Pause(0, []byte("default"), 3)
	e.Reserve(0, all[0].s, Forever)
	e.Reserve(0, all[1].s, Forever)
	runTo(t, e, 5*second)
	e.Pause(5*second, []byte("default"), 20)
	runTo(t, e, 30*second)
	if want := []string{"1:1@3000ms", "2:2@25000ms"}; !slices.Equal(*got, want) {
		t.Errorf("got %q, want %q", *got, want)
	}
}

// Reservable is the number of jobs that workers can reserve.
func TestReservable(t *testing.T) {
	for want, p := range map[uint64]*Policy{9: nil, 3: {MaxReserved: 4}, 2: {MaxReserved: 4, Interval: second, Burst: 2}, 5: {Interval: second / 5}, 0: {PausedUntil: math.MaxInt64}} {
		e := New(Options{Policies: PolicyFunc(func(string) *Policy { return p })})
		s := e.Open(nil)
		id := uint64(0)
		for range 10 {
			id, _ = e.Put(0, s, Spec{TTR: 60}, nil)
		}
		e.ReserveJob(0, s, id)
		if st, _ := e.TubeStats(0, []byte(DefaultTube)); st.Reservable != want {
			t.Errorf("%+v: %d of %d", p, st.Reservable, st.Ready)
		}
		e.Pause(0, []byte(DefaultTube), 5)
		if st, _ := e.TubeStats(0, []byte(DefaultTube)); st.Reservable != 0 {
			t.Errorf("%+v: %d while it is paused", p, st.Reservable)
		}
	}
}

// A new rate starts with a debt of at most one bucket. Setting the same rate again keeps
// the debt, and removing the rate drops it.
func TestRateChanges(t *testing.T) {
	hour := 3600 * second
	for name, c := range map[string]struct {
		steps []Policy // set after 5 jobs at a rate of 1/h with a burst of 5
		want  int64    // time until the gate opens
	}{
		"the same":        {[]Policy{{Interval: hour, Burst: 5}}, hour},
		"faster":          {[]Policy{{Interval: second / 1000}}, second / 1000},
		"smaller burst":   {[]Policy{{Interval: hour, Burst: 1}}, hour},
		"slower":          {[]Policy{{Interval: 2 * hour, Burst: 1}}, 2 * hour},
		"none":            {[]Policy{{}}, 0},
		"none, then same": {[]Policy{{}, {Interval: hour, Burst: 5}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{Policies: everyTube(Policy{Interval: hour, Burst: 5})})
			s := e.Open(nil)
			for range 9 {
				e.Put(0, s, Spec{TTR: 100}, nil)
			}
			for range 5 {
				e.Reserve(0, s, 0)
			}
			for _, p := range c.steps {
				e.SetPolicies(everyTube(p))
				for e.outdated() {
					e.Tick(0)
				}
			}
			if st, _ := e.TubeStats(0, []byte(DefaultTube)); st.Gate != c.want {
				t.Errorf("the gate opens in %d ns, want %d", st.Gate, c.want)
			}
		})
	}
}

// Reservations by id never take more than the tokens of one bucket.
func TestRateDebt(t *testing.T) {
	const day, burst = 24 * 3600 * second, 10000
	e := New(Options{Policies: everyTube(Policy{Interval: day, Burst: burst})})
	s := e.Open(nil)
	e.Put(0, s, Spec{TTR: 100}, nil)
	for range 110_000 { // in ns, 110,000 days exceed an int64
		e.ReserveJob(0, s, 1)
		e.Release(0, s, 1, 0, 0)
	}
	if st, _ := e.TubeStats(0, []byte(DefaultTube)); st.Gate != day {
		t.Errorf("the next token is due in %d days", st.Gate/day)
	}
}
