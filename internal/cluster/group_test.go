package cluster

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// roles returns the roles of all members, as the leader knows them.
func (w *world) roles() map[uint64]Role {
	w.t.Helper()
	s, err := w.leader().Status()
	w.must(err)
	roles := map[uint64]Role{}
	for _, k := range s.Members {
		roles[k.ID] = k.Role
	}
	return roles
}

// The leadership goes from member to member under load. Nothing is undecided: what is in the queue was
// acknowledged.
func TestTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 3)
		time.Sleep(time.Second) // who has just started does not vote
		stop := w.load(5)
		for i := range 9 {
			time.Sleep(300 * time.Millisecond)
			l := w.leader()
			to := uint64(0)
			if i%3 > 0 {
				to = (l.opt.Self.ID+uint64(i%3)-1)%3 + 1
			}
			w.must(l.Transfer(t.Context(), to))
			if next := w.leader().opt.Self.ID; next == l.opt.Self.ID || to != 0 && next != to {
				w.fatalf("member %d leads after a transfer from %d to %d", next, l.opt.Self.ID, to)
			}
		}
		if err := w.leader().Transfer(t.Context(), 77); err == nil {
			t.Error("the leadership went to somebody who is no member")
		}
		stop()
		w.audit()
		w.leader().Broker().Look(func(e *engine.Engine, _ int64) {
			for c := range e.Snapshots {
				if !w.ledger.puts[c.ID] {
					t.Errorf("job %d is there, and was not acknowledged", c.ID)
				}
			}
		})
		w.close()
	})
}

// A transfer to a member that does not answer ends after an election timeout; then the same member leads on.
func TestTransferToNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 3)
		l := w.leader()
		w.part(w.machines[2])
		if l.Transfer(t.Context(), 3) == nil {
			t.Error("a member that cannot be reached has taken over")
		}
		if w.leader() != l {
			t.Error("another member leads")
		}
		_, err := w.put(w.leader(), "mail", engine.Spec{TTR: 60}, "after that")
		w.must(err)
		w.heal()
		w.audit()
		w.close()
	})
}

// A dead member is replaced under load, a voter and then the leader itself are removed.
func TestMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 3)
		stop := w.load(3)
		w.machines[2].kill(true)
		added := w.machine()
		done := make(chan error, 1)
		l := w.leader()
		go func() { done <- l.Replace(t.Context(), 3, added.self()) }()
		w.until("the new member is known", func() bool { return w.roles()[4] == Learner })
		w.must(Join(added.disk, dir, l.Group()))
		added.boot()
		w.must(<-done)
		want := map[uint64]Role{1: Voter, 2: Voter, 4: Voter}
		want[w.leader().opt.Self.ID] = Leader
		if got := w.roles(); !reflect.DeepEqual(got, want) {
			w.fatalf("the roles are %v, want %v", got, want)
		}

		gone := w.machineOf(w.leader())
		if err := gone.member.Remove(t.Context(), gone.id); err != nil && !errors.Is(err, ErrNotLeader) {
			w.fatalf("a leader cannot be removed: %v", err) // it may not hear that it was
		}
		w.until("another one leads", func() bool { m := w.whoLeads(); return m != nil && m.opt.Self.ID != gone.id })
		w.must(gone.member.Close())
		w.mu.Lock()
		gone.member = nil
		w.mu.Unlock()
		time.Sleep(time.Second)
		if roles := w.roles(); len(roles) != 2 || roles[gone.id] != "" {
			w.fatalf("the roles are %v after %d was removed", roles, gone.id)
		}
		if err := w.leader().Greet(gone.id, Hello{Level: 1}); !errors.Is(err, ErrNotMember) {
			t.Errorf("a member that was removed is greeted: %v", err)
		}
		stop()
		w.audit()
		for _, m := range w.machines { // they know it after a restart, too
			if m.member != nil {
				m.kill(true)
				m.boot()
			}
		}
		w.audit()
		if roles := w.roles(); len(roles) != 2 {
			w.fatalf("after a restart the roles are %v", roles)
		}
		w.close()
	})
}

// Changes of the members are refused where they make no sense.
func TestGroupErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 3)
		l := w.leader()
		other := w.machines[l.opt.Self.ID%3].member
		for name, c := range map[string]struct{ err, want error }{
			"add at a follower":    {other.Add(t.Context(), raftlog.Member{ID: 9, Address: "x:1"}), ErrNotLeader},
			"remove at a follower": {other.Remove(t.Context(), 1), ErrNotLeader},
			"remove nobody":        {l.Remove(t.Context(), 9), ErrNotMember},
			"replace nobody":       {l.Replace(t.Context(), 9, raftlog.Member{ID: 10, Address: "x:1"}), ErrNotMember},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", name, c.err, c.want)
			}
		}
		if l.Add(t.Context(), raftlog.Member{ID: 9, Address: l.opt.Self.Address}) == nil {
			t.Error("two members have an address")
		}
		w.must(l.Add(t.Context(), w.machines[2].self())) // it was asked for before
		w.close()
	})
}

// A disk that was rolled back is refused by those whom its member had acknowledged more, also after their restart.
func TestRolledBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 3)
		l := w.machineOf(w.leader())
		m := w.machines[l.id%3]
		old := m.member.Greeting()
		for i := range 5 {
			_, err := w.put(l.member, "mail", engine.Spec{TTR: 60}, fmt.Sprint(i))
			w.must(err)
		}
		time.Sleep(time.Second)
		if err := l.member.Greet(m.id, old); !errors.Is(err, ErrRolledBack) {
			t.Errorf("a log that lost what it had acknowledged: %v", err)
		}
		m.kill(false)
		m.boot()
		time.Sleep(time.Second)
		l.kill(false)
		l.boot()
		w.leader()
		old.LastTerm, old.LastIndex = 99, 99
		if err := l.member.Greet(m.id, old); !errors.Is(err, ErrRolledBack) {
			t.Errorf("an older life of a member: %v", err)
		}
		w.audit()
		w.close()
	})
}

// A leader that reaches no majority acknowledges nothing, lets nobody wait for ever, and says so.
func TestNoMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 3)
		l := w.leader()
		w.part(w.machineOf(l))
		began := time.Now()
		if _, err := w.put(l, "mail", engine.Spec{TTR: 60}, "lost"); !errors.Is(err, broker.ErrDeposed) {
			t.Errorf("a put without a majority: %v", err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v of fake time", took)
		}
		time.Sleep(time.Second)
		if w.machineOf(l).deposed.Load() == 0 {
			t.Error("its clients were not closed")
		}
		if lead := l.Lead(); lead.Office != 0 || l.Ready() == nil {
			t.Errorf("without a majority it says %+v, ready: %v", lead, l.Ready())
		}
		if s, err := l.Status(); err != nil || s.Quorum {
			t.Errorf("its status: %+v, %v", s, err)
		}
		seen := false
		l.Broker().Look(func(e *engine.Engine, _ int64) { seen = e.Stats().Ready == 0 })
		if !seen {
			t.Error("those who watch do not see the queue without the put")
		}
		w.heal()
		w.until("it is ready again", func() bool { return l.Ready() == nil })
		w.audit()
		w.close()
	})
}

// When the leader's machine refuses connections the others do not wait for an election timeout. A refusal of a machine
// that does not lead, or of an earlier term, does nothing.
func TestFastFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 3)
		w.refusals = true
		stop := w.load(3)
		for range 6 {
			time.Sleep(time.Second)
			l := w.leader()
			term := l.Lead().Term
			for _, m := range w.machines {
				if m.member != l {
					m.member.Refused(m.id%3+1, term-1)
					m.member.Refused(m.id, term)
				}
			}
			time.Sleep(300 * time.Millisecond)
			if lead := w.leader().Lead(); lead.Term != term {
				w.fatalf("there is another term after refusals that mean nothing: %+v", lead)
			}
			m := w.machineOf(l)
			began := time.Now()
			m.kill(false)
			w.leader()
			if gap := time.Since(began); gap > 300*time.Millisecond {
				t.Errorf("nobody led for %v", gap)
			}
			m.boot()
		}
		stop()
		w.audit()
		w.close()
	})
}

// Members that follow send each other nothing, and know all the same who is there.
func TestReachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 3)
		unreachable := func(m *machine) (n int) {
			s, err := m.member.Status()
			w.must(err)
			for _, k := range s.Members {
				if !k.Reachable {
					n++
				}
			}
			return n
		}
		for _, m := range w.machines {
			for _, other := range w.machines {
				if m != other {
					w.must(m.member.Greet(other.id, other.member.Greeting()))
				}
			}
			w.until("a member reaches all", func() bool { return unreachable(m) == 0 })
		}
		follower := w.machines[2]
		if w.machineOf(w.leader()) == follower {
			follower = w.machines[1]
		}
		gone := 6 - follower.id - w.leader().opt.Self.ID
		follower.member.Unreachable(gone)
		w.until("the follower has lost one", func() bool { return unreachable(follower) == 1 })
		w.close()
	})
}
