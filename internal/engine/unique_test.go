package engine

import (
	"fmt"
	"testing"
)

// uniqueEngine returns an engine that has a tube "u", in which jobs are unique by body,
// and a session that uses and watches the tube.
func uniqueEngine(p *Policy) (*Engine, *Session) {
	if p.Unique == nil {
		p.Unique = byBody
	}
	e := New(Options{Logged: true, Policies: PolicyFunc(func(tube string) *Policy {
		return map[string]*Policy{"u": p}[tube]
	})})
	s := e.Open(nil)
	e.Use(s, []byte("u"))
	e.Watch(s, []byte("u"))
	return e, s
}

// putsAgain puts an equal job and reports whether it was a duplicate.
func putsAgain(t *testing.T, e *Engine, now int64, s *Session) bool {
	t.Helper()
	last := e.LastID()
	id, o := e.Put(now, s, Spec{TTR: 100}, []byte("x"))
	if o != OK && o != Duplicate || (o == Duplicate) != (id <= last) || e.LastID() != max(id, last) {
		t.Fatalf("the put after job %d has the id %d, outcome %d; the last id is %d", last, id, o, e.LastID())
	}
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
	return o == Duplicate
}

// Keys take memory until their jobs are deleted.
func TestMemoryOfKeys(t *testing.T) {
	e, s := uniqueEngine(&Policy{})
	empty := e.memory()
	two := empty + 2*memoryOf(1) + keyBytes
	for limit, want := range map[int64]Outcome{two: OK, two - 1: OutOfMemory} {
		e.SetLimits(Limits{Memory: limit})
		first, _ := e.Put(0, s, Spec{TTR: 1}, []byte("a"))
		second, o := e.Put(0, s, Spec{TTR: 1}, []byte("b"))
		if o != want {
			t.Errorf("%d bytes: %v", limit, o)
		}
		e.Delete(s, first)
		e.Delete(s, second)
		if used, _ := e.LimitedMemory(); used != empty {
			t.Errorf("an empty engine takes %d bytes", used)
		}
	}
}

// The rows are the table in doc/policies.md.
func TestUniqueWhile(t *testing.T) {
	for _, test := range []struct {
		what string
		do   func(e *Engine, s *Session)
		from While // first value of unique-while with which the job has its key, or 9 for none
	}{
		{"ready", func(*Engine, *Session) {}, WhileWaiting},
		{"delayed", func(e *Engine, s *Session) { delay := uint32(9); e.AlterJob(0, 1, Alteration{Delay: &delay}) }, WhileWaiting},
		{"reserved", func(e *Engine, s *Session) { e.Reserve(0, s, 0) }, WhileActive},
		{"released", func(e *Engine, s *Session) { e.Reserve(0, s, 0); e.Release(0, s, 1, 0, 0) }, WhileWaiting},
		{"timed out", func(e *Engine, s *Session) { e.Reserve(0, s, 0); e.Tick(100 * second) }, WhileWaiting},
		{"buried", func(e *Engine, s *Session) { e.BuryJob(1, 0) }, WhilePresent},
		{"kicked", func(e *Engine, s *Session) { e.BuryJob(1, 0); e.KickJob(0, 1) }, WhileWaiting},
		{"deleted", func(e *Engine, s *Session) { e.Delete(s, 1) }, 9},
		{"moved away", func(e *Engine, s *Session) { e.MoveJob(0, 1, "other") }, 9},
		{"moved back", func(e *Engine, s *Session) { e.MoveJob(0, 1, "other"); e.MoveJob(0, 1, "u") }, WhileWaiting},
		{"with another body", func(e *Engine, s *Session) { body := []byte("y"); e.AlterJob(0, 1, Alteration{Body: &body}) }, 9},
		{"buried, with another body", func(e *Engine, s *Session) {
			e.BuryJob(1, 0)
			body := []byte("y")
			e.AlterJob(0, 1, Alteration{Body: &body})
		}, 9},
	} {
		for while := WhileWaiting; while <= WhilePresent; while++ {
			t.Run(fmt.Sprint(test.what, " ", while), func(t *testing.T) {
				e, s := uniqueEngine(&Policy{UniqueWhile: while})
				if putsAgain(t, e, 0, s) {
					t.Fatal("the first put is a duplicate")
				}
				test.do(e, s)
				if got, want := putsAgain(t, e, 100*second, s), while >= test.from; got != want {
					t.Errorf("is the second put a duplicate? %v", got)
				}
			})
		}
	}
}

// A job that can no longer be reserved does not make an equal put a duplicate.
func TestUniqueStale(t *testing.T) {
	e, s := uniqueEngine(&Policy{TTL: 10 * second})
	putsAgain(t, e, 0, s)
	again := putsAgain(t, e, 9*second, s)
	if e.Tick(10 * second); !again || putsAgain(t, e, 10*second, s) {
		t.Error("want a duplicate before the first job is too old, and none then")
	}
}

// A duplicate put changes the existing job as the policy defines.
func TestUniqueMode(t *testing.T) {
	for _, test := range []struct {
		mode UniqueMode
		want string
	}{
		{KeepFirst, "pri 3 delay 10 left 6 ttr 20 x1"},
		{Replace, "pri 7 delay 10 left 6 ttr 30 x2"},
		{Debounce, "pri 7 delay 50 left 50 ttr 30 x2"},
	} {
		e, s := uniqueEngine(&Policy{Unique: byFirst, UniqueMode: test.mode})
		e.Put(0, s, Spec{Pri: 5, Delay: 10, TTR: 20}, []byte("x1"))
		e.Put(4*second, s, Spec{Pri: 3, Delay: 50, TTR: 20}, []byte("x1"))
		id, o := e.Put(4*second, s, Spec{Pri: 7, Delay: 50, TTR: 30}, []byte("x2"))
		st, _ := e.JobStats(4*second, 1)
		j, _ := e.Peek(1)
		if got := fmt.Sprintf("pri %d delay %d left %d ttr %d %s", st.Pri, st.Delay, st.TimeLeft, st.TTR, j.Body); got != test.want || id != 1 || o != Duplicate {
			t.Errorf("mode %d: job %d, outcome %d: %s, want %s", test.mode, id, o, got, test.want)
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
	}
}

// A reply that depends on a job is a promise. The engine makes no promise while the Log
// is broken.
func TestUniquePromises(t *testing.T) {
	e, s := uniqueEngine(&Policy{})
	putsAgain(t, e, 0, s)
	e.TakeChanges()
	before := e.Promises()
	if !putsAgain(t, e, 0, s) || e.Promises() == before || len(e.changes) > 0 {
		t.Errorf("a duplicate made %d promises, and changes %v", e.Promises()-before, e.changes)
	}
	for _, mode := range []UniqueMode{KeepFirst, Replace} {
		e.opt.Admit = func(ChangeKind, string, int) Outcome { return Failed }
		e.byName["u"].policy.UniqueMode = mode
		if id, o := e.Put(0, s, Spec{}, []byte("x")); o != Failed || id != 0 {
			t.Errorf("mode %d: a put while the Log is broken: job %d, outcome %d", mode, id, o)
		}
	}
}

// A new policy applies to existing jobs. They are indexed in slices, or, if they were
// restored, before the first client is served. Keys are also removed in slices.
func TestUniqueLater(t *testing.T) {
	const jobs = 5000
	e, s := uniqueEngine(&Policy{})
	later := e.opt.Policies
	e.SetPolicies(nil)
	e.byName["u"].policy, e.byName["u"].keyed = nil, false
	for n := range jobs {
		e.Put(0, s, Spec{}, fmt.Appendf(nil, "%d", n))
	}
	log := e.TakeChanges()
	e.SetPolicies(later)
	turns := 0
	for all := false; !all || turns == 0; turns++ {
		e.Tick(0)
		if _, all = e.KeysHeld(); e.turnWork > maxTurnWork/4 {
			t.Fatalf("turn %d: work %d", turns, e.turnWork)
		}
		if all != (e.Next() == Never) {
			t.Fatalf("turn %d: all keys exist: %v; the next turn is at %d", turns, all, e.Next())
		}
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
	restored := New(Options{Policies: later})
	restoreAll(restored, log)
	n, _ := e.KeysHeld()
	m, _ := restored.KeysHeld()
	if n != jobs || m != jobs || turns < 5 {
		t.Errorf("%d keys exist after %d turns, and %d after a restart", n, turns, m)
	}
	set := New(Options{Policies: textPolicies{}})
	restoreAll(set, log)
	set.Restore(named(PolicySet, "u", "unique"))
	set.Tick(0)
	if n, all := set.KeysHeld(); n != jobs || !all {
		t.Errorf("%d keys exist at the first client, with a policy from settings: %v", n, all)
	}
	e.SetPolicies(PolicyFunc(func(string) *Policy { return nil }))
	for turns = 0; e.outdated(); turns++ {
		e.Tick(0)
	}
	if n, _ := e.KeysHeld(); n != 0 || turns < 5 {
		t.Errorf("%d keys exist %d turns after the policy was removed", n, turns)
	}
}

// textPolicies implements policies that make the jobs of all tubes unique when any
// setting exists.
type textPolicies struct{ *Policy }

func (p textPolicies) Of(string) *Policy          { return p.Policy }
func (textPolicies) With(_, text string) Policies { return textPolicies{&Policy{Unique: byBody}} }

// The index is consistent at each step of its growth, and frees its memory at the end.
func TestKeyIndex(t *testing.T) {
	e := New(Options{Policies: PolicyFunc(func(string) *Policy { return &Policy{Unique: byBody} })})
	s := e.Open(nil)
	const jobs = 3 * slotsPerPage
	for n := range jobs {
		e.Put(0, s, Spec{}, fmt.Appendf(nil, "%d", n))
		e.Put(0, s, Spec{Again: true}, []byte("equal"))
	}
	for id := range uint64(2 * jobs) {
		if id%1000 == 0 {
			if err := e.Check(); err != nil {
				t.Fatal(err)
			}
		}
		e.DeleteJob(id + 1)
	}
	if err := e.Check(); err != nil || e.keys.first.of != nil {
		t.Fatalf("a map of %d hashes remains, %v", e.keys.first.most, err)
	}
}
