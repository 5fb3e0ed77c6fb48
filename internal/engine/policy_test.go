package engine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// everyTube returns policies that are the same for each tube.
func everyTube(p Policy) Policies { return PolicyFunc(func(string) *Policy { return &p }) }

// fail reserves the only job and ends the reservation.
func fail(t *testing.T, e *Engine, now int64, end Ends) {
	t.Helper()
	s := e.Open(nil)
	job, o := e.Reserve(now, s, 0)
	if o != OK {
		t.Fatalf("reserve: %v", o)
	}
	switch end {
	case Timeout:
		e.Tick(now + 100*second)
	case Release:
		e.Release(now, s, job.ID, 7, 0)
	}
	e.Close(now+100*second, s)
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
}

// An exhausted job is no longer ready, for each kind of failure, and a kick grants the
// full number of attempts again.
func TestExhausted(t *testing.T) {
	for name, test := range map[string]struct {
		policy Policy
		end    Ends
		tries  int
		event  PolicyEvent
	}{
		"attempts, timeout":  {Policy{MaxAttempts: 3}, Timeout, 3, OutOfAttempts},
		"attempts, close":    {Policy{MaxAttempts: 3}, Lost, 3, OutOfAttempts},
		"attempts, release":  {Policy{MaxAttempts: 3}, Release, 3, OutOfAttempts},
		"timeouts":           {Policy{MaxTimeouts: 2, MaxAttempts: 3}, Timeout, 2, OutOfTimeouts},
		"releases":           {Policy{MaxReleases: 1}, Release, 1, OutOfReleases},
		"releases, a close":  {Policy{MaxReleases: 1}, Lost, 9, NumPolicyEvents},
		"timeouts, a close":  {Policy{MaxTimeouts: 1}, Lost, 9, NumPolicyEvents},
		"both, the first":    {Policy{MaxAttempts: 2, MaxReleases: 2}, Release, 2, OutOfAttempts},
		"delay is no limit":  {Policy{RetryDelay: 0, RetryMax: 1}, Timeout, 9, NumPolicyEvents},
		"none of its fields": {Policy{}, Timeout, 9, NumPolicyEvents},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			e := New(Options{Policies: everyTube(test.policy), PolicyActed: func(act PolicyAct) { told = append(told, fmt.Sprint(act.Event, " ", act.Tube, " ", act.Job)) }})
			id, _ := e.Put(0, e.Open(nil), Spec{TTR: 5, Pri: 3}, []byte("x"))
			now, tries := int64(0), 0
			for ; tries < 9 && e.Stats().Ready == 1; tries++ {
				now += 1000 * second
				fail(t, e, now, test.end)
			}
			if tries != test.tries {
				t.Fatalf("it was tried %d times, want %d", tries, test.tries)
			}
			if test.event == NumPolicyEvents {
				if len(told) > 0 || e.PolicyCounts() != (PolicyCounts{}) {
					t.Errorf("events %q, counts %v", told, e.PolicyCounts())
				}
				return
			}
			st, _ := e.JobStats(now, id)
			if want := []string{test.event.String() + " default 1"}; fmt.Sprint(told) != fmt.Sprint(want) || st.State != Buried || st.Buries != 1 {
				t.Errorf("events %q, the job is %+v", told, st)
			}
			e.KickJob(now, id)
			for tries = 0; tries < 9 && e.Stats().Ready == 1; tries++ {
				now += 1000 * second
				fail(t, e, now, test.end)
			}
			if c := e.PolicyCounts(); tries != test.tries || c[test.event] != 2 || c.Exhausted() != 2 {
				t.Errorf("%d attempts after a kick, want %d; counts %v", tries, test.tries, c)
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	p := Policy{RetryDelay: 5 * second, RetryFactor: 2, RetryMax: 60 * second}
	for n, want := range []int64{1: 5, 2: 10, 3: 20, 4: 40, 5: 60, 6: 60} {
		if got := p.backoff(1, uint32(n)); n > 0 && got != want*second {
			t.Errorf("after %d failures: %v, want %ds", n, time.Duration(got), want)
		}
	}
	p.RetryFactor = 1
	if got := p.backoff(1, 1<<32-1); got != 5*second {
		t.Errorf("a factor of 1: %v", time.Duration(got))
	}
	p.RetryJitter = 0.5
	sum, seen := int64(0), make(map[int64]bool)
	const jobs = 10000
	for id := range uint64(jobs) {
		d := p.backoff(id, 1)
		if d != p.backoff(id, 1) || d < 5*second/2 || d > 5*second {
			t.Fatalf("job %d: %v", id, time.Duration(d))
		}
		sum += d
		seen[d] = true
	}
	if mean := sum / jobs; mean < 3_700_000_000 || mean > 3_800_000_000 || len(seen) < jobs-10 {
		t.Errorf("the mean is %v, %d are different", time.Duration(mean), len(seen))
	}
}

// If the Log refuses to record the action of a policy, the job becomes ready, and the
// next failure tries again.
func TestPolicyRefused(t *testing.T) {
	for name, test := range map[string]struct {
		policy Policy
		limits Limits
		kind   ChangeKind
	}{
		"bury":              {Policy{MaxTimeouts: 1}, Limits{}, JobState},
		"delay":             {Policy{RetryDelay: second, RetryMax: second, RetryFactor: 1, RetryOn: Timeout}, Limits{}, JobState},
		"delete":            {Policy{MaxTimeouts: 1, Exhausted: DeleteExhausted}, Limits{}, JobDeleted},
		"move":              {Policy{MaxTimeouts: 1, Exhausted: MoveExhausted, DeadTube: "dead"}, Limits{}, JobMoved},
		"move, the tubes":   {Policy{MaxTimeouts: 1, Exhausted: MoveExhausted, DeadTube: "dead"}, Limits{Tubes: 1}, 0},
		"move, a full tube": {Policy{MaxTimeouts: 1, Exhausted: MoveExhausted, DeadTube: "dead"}, Limits{Tube: func(string) TubeLimits { return TubeLimits{Bytes: 1} }}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			refuse := false
			e := New(Options{Logged: true, Policies: everyTube(test.policy), Admit: func(kind ChangeKind, _ string, _ int) Outcome {
				if refuse && (kind == test.kind || kind == JobState) {
					return OutOfMemory
				}
				return OK
			}})
			e.Put(0, e.Open(nil), Spec{TTR: 5}, []byte("two"))
			e.TakeChanges()
			refuse = true
			e.SetLimits(test.limits)
			fail(t, e, 0, Timeout)
			if c := e.PolicyCounts(); e.Stats().Ready != 1 || c[PolicySkipped] == 0 || c.Exhausted() > 0 || e.Promises() > 0 || e.names.Len() != 1 {
				t.Fatalf("refused: %+v, counts %v, %d changes, %d tubes", e.Stats(), c, e.Promises(), e.names.Len())
			}
			refuse = false
			e.SetLimits(Limits{})
			fail(t, e, 1000*second, Timeout)
			if e.Stats().Ready != 0 || e.Promises() != 1 {
				t.Fatalf("admitted: %+v, %d changes", e.Stats(), e.Promises())
			}
		})
	}
}

// If dead tubes form a cycle, an exhausted job moves to the next tube and waits there for
// a kick. It stays if its dead tube is its own tube or has an invalid name.
func TestDeadTubes(t *testing.T) {
	long := strings.Repeat("x", maxTubeName-4)
	dead := map[string]string{"a": "b", "b": "a", "self": "{tube}", long: "{tube}.dead"}
	for first, then := range map[string][]string{"a": {"b", "a", "b"}, "self": {"self", "self"}, long: {long, long}} {
		e := New(Options{Policies: PolicyFunc(func(tube string) *Policy {
			return &Policy{MaxReleases: 1, Exhausted: MoveExhausted, DeadTube: dead[tube]}
		})})
		id, _ := e.PutInto(0, []byte(first), Spec{TTR: 5}, nil)
		for n, want := range then {
			s := e.Open(nil)
			e.ReserveJob(0, s, id)
			e.Release(0, s, id, 0, 0)
			c := e.PolicyCounts()
			if st, _ := e.JobStats(0, id); st.Tube != want || st.State != Buried || c.Exhausted() != uint64(n+1) {
				t.Fatalf("%.9s: want it buried in %.9s, it is %+v", first, want, st)
			}
			if err := e.Check(); err != nil {
				t.Fatal(err)
			}
			e.KickJob(0, id)
		}
	}
}

// The engine of a new leader continues to count the ends of reservations, with and
// without a policy.
func TestCountsAreLogged(t *testing.T) {
	for _, p := range []Policy{{MaxAttempts: 9}, {}} {
		e := New(Options{Logged: true, Policies: everyTube(p)})
		id, _ := e.Put(0, e.Open(nil), Spec{TTR: 5}, nil)
		fail(t, e, 0, Timeout)
		fail(t, e, 1000*second, Lost)
		after := New(Options{})
		restoreAll(after, e.TakeChanges())
		st, _ := after.JobStats(0, id)
		if f, _ := st.Failure(); st.Reserves != 2 || st.Timeouts != 1 || f.End != Lost || f.Attempt != 2 {
			t.Errorf("%+v: it was restored as %+v", p, st)
		}
	}
}

// After a few turns of bounded length, a new policy applies to all tubes. Without
// policies, the engine takes no action.
func TestSetPolicies(t *testing.T) {
	const tubes = 5000
	e := New(Options{})
	s := manyTubes(e, tubes)
	e.SetPolicies(everyTube(Policy{MaxAttempts: 1}))
	turns := 0
	for ; e.Next() <= 0; turns++ {
		if e.Tick(0); turns > tubes {
			t.Fatal("it does not end")
		}
	}
	for _, tube := range e.tubes {
		if tube.policy == nil {
			t.Fatalf("%s has no policy after %d turns", tube.name, turns)
		}
	}
	if turns < 10 {
		t.Errorf("it took %d turns", turns)
	}
	e.Use(s, []byte("new"))
	e.Put(0, s, Spec{TTR: 5}, nil)
	if e.PolicyOf("new") == nil || e.byName["new"].policy == nil {
		t.Error("a new tube has no policy")
	}
	w := e.Open(nil)
	e.Watch(w, []byte("new"))
	e.Reserve(0, w, 0)
	e.SetPolicies(nil)
	if e.Close(0, w); e.Stats().Ready != 1 {
		t.Errorf("without policies: %+v", e.Stats())
	}
	other := New(Options{Policies: everyTube(Policy{})})
	other.policyCounts[Retried] = 5
	e.Inherit(other.Settings())
	if e.PolicyOf("x") == nil || e.PolicyCounts()[Retried] != 5 {
		t.Error("the state of the other engine was not inherited")
	}
}

type failure string

type panicking struct{}

func (panicking) Helper() {}
func (panicking) Fatalf(format string, args ...any) {
	panic(failure(fmt.Sprintf(format, args...)))
}

// TestPoliciesPlanted removes one setting at a time from the engine's policies. The
// comparison with the model must detect it.
func TestPoliciesPlanted(t *testing.T) {
	for name, plant := range map[string]func(*Policy){
		"max-attempts": func(p *Policy) { p.MaxAttempts = 0 },
		"max-timeouts": func(p *Policy) { p.MaxTimeouts = 0 },
		"max-releases": func(p *Policy) { p.MaxReleases = 0 },
		"exhausted":    func(p *Policy) { p.Exhausted = BuryExhausted },
		"dead-tube":    func(p *Policy) { p.DeadTube = "elsewhere" },
		"retry-delay":  func(p *Policy) { p.RetryDelay = 0 },
		"retry-max":    func(p *Policy) { p.RetryMax++ },
		"retry-factor": func(p *Policy) { p.RetryFactor++ },
		"retry-jitter": func(p *Policy) { p.RetryJitter /= 2 },
		"retry-on":     func(p *Policy) { p.RetryOn = 7 },
		"snooze":       func(p *Policy) { p.Snooze = 0 },
		"paused":       func(p *Policy) { p.PausedUntil = 0 },
		"ttl":          func(p *Policy) { p.TTL = 0 },
		"expired":      func(p *Policy) { p.BuryAtTTL = false },
		"keep-buried":  func(p *Policy) { p.KeepBuried = 0 },
		"max-reserved": func(p *Policy) { p.MaxReserved = 0 },
		"rate":         func(p *Policy) { p.Interval = 0 },
		"burst":        func(p *Policy) { p.Burst++ },
	} {
		t.Run(name, func(t *testing.T) {
			seeds.Find(t, 1, func(_ *testing.T, seed uint64) string { return differs(seed, plant) })
		})
	}
}

// differs runs the twins, with policies planted in the engine, and returns their
// difference.
func differs(seed uint64, plant func(*Policy)) (how string) {
	defer func() {
		if f, ok := recover().(failure); ok {
			how = string(f)
		}
	}()
	tw := newTwins(panicking{}, plainSource{rand.New(rand.NewPCG(seed, seed))}, Options{})
	tw.plant = plant
	names := append(verbs(), "policies", "policies", "policies", "put", "reserve", "reserve", "reserve", "release", "release", "close", "close", "open", "open", "tick", "tick")
	for i := range 600 {
		tw.m.heard, tw.heard = nil, nil
		tw.verb(pick(tw.src, "verb", names))
		tw.compare()
		if len(tw.m.jobs) > 40 {
			tw.drain(i)
		}
	}
	return ""
}
