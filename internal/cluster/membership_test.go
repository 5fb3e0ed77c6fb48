package cluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/cluster/entry"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// roles returns the roles of all members, as seen by the leader.
func (sim *simulation) roles() map[uint64]apitype.Role {
	sim.t.Helper()
	s, err := sim.leader().Status()
	sim.must(err)
	roles := map[uint64]apitype.Role{}
	for _, k := range s.Members {
		roles[k.ID] = k.Role
	}
	return roles
}

// The leadership moves from member to member under load. The outcome of every request is
// known: the queue contains exactly the acknowledged jobs.
func TestTransfer(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		time.Sleep(time.Second) // members do not vote directly after their start
		stop := sim.load(5)
		for i := range 9 {
			time.Sleep(300 * time.Millisecond)
			l := sim.leader()
			to := uint64(0)
			if i%3 > 0 {
				to = (l.opt.Self.ID+uint64(i%3)-1)%3 + 1
			}
			sim.must(l.Transfer(t.Context(), to))
			if next := sim.leader().opt.Self.ID; next == l.opt.Self.ID || to != 0 && next != to {
				sim.fatalf("member %d leads after a transfer from %d to %d", next, l.opt.Self.ID, to)
			}
		}
		if err := sim.leader().Transfer(t.Context(), 77); err == nil {
			t.Error("the leadership went to a server that is not a member")
		}
		stop()
		sim.audit()
		if n := sim.logged("read from the journal again"); n > 0 {
			t.Errorf("%d engines were rebuilt, although no change was undone", n)
		}
		kept := sim.nodes[0].digest()
		for _, m := range sim.nodes { // an engine created from the journal is equal
			m.kill(false)
		}
		for _, m := range sim.nodes {
			m.boot()
		}
		sim.audit()
		if again := sim.nodes[0].digest(); again != kept {
			t.Errorf("the digest is %x, and was %x before the restart", again, kept)
		}
		sim.leader().Broker().View(func(e *engine.Engine, _ int64) {
			for c := range e.Snapshots {
				if !sim.asked.IsPut(keyOf(c.Body)) {
					t.Errorf("job %d exists, but was not acknowledged", c.ID)
				}
			}
		})
	})
}

// A transfer to an unreachable member fails after an election timeout, and the leader
// keeps the leadership.
func TestTransferToUnreachable(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		l := sim.leader()
		sim.part(sim.nodes[2])
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := l.Transfer(ctx, 3); !errors.Is(err, ErrDeclined) {
			t.Errorf("a transfer to a member that cannot be reached: %v", err)
		}
		if sim.leader() != l {
			t.Error("another member leads")
		}
		sim.mustPut(sim.leader(), 1, "after that")
		sim.heal()
	})
}

// Under load, a dead member is replaced, and then a voter and the leader itself are
// removed.
func TestMembers(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		stop := sim.load(3)
		sim.nodes[2].kill(true)
		added := sim.node()
		sim.replace(3, added)
		added.boot()
		sim.until("the dead member is replaced", func() bool { return sim.roles()[4] != apitype.Learner && sim.roles()[3] == "" })
		want := map[uint64]apitype.Role{1: apitype.Voter, 2: apitype.Voter, 4: apitype.Voter}
		want[sim.leader().opt.Self.ID] = apitype.Leader
		if got := sim.roles(); !reflect.DeepEqual(got, want) {
			sim.fatalf("the roles are %v, want %v", got, want)
		}

		gone := sim.nodeOf(sim.leader())
		if err := gone.member.Remove(t.Context(), gone.id); err != nil && !errors.Is(err, ErrNotLeader) {
			sim.fatalf("a leader cannot be removed: %v", err) // the leader might not be notified of its removal
		}
		sim.awaitOther(gone.member)
		sim.removed(gone)
		time.Sleep(time.Second)
		if roles := sim.roles(); len(roles) != 2 || roles[gone.id] != "" {
			sim.fatalf("the roles are %v after %d was removed", roles, gone.id)
		}
		if err := sim.leader().AcceptHandshake(gone.id, Handshake{Level: entry.Level, Number: 1}); !errors.Is(err, ErrRemoved) {
			t.Errorf("a removed member is accepted: %v", err)
		}
		stop()
		sim.audit()
		for _, m := range sim.nodes { // they still have this information after a restart
			if m.member != nil {
				m.kill(true)
				m.boot()
			}
		}
		sim.audit()
		if roles := sim.roles(); len(roles) != 2 {
			sim.fatalf("after a restart the roles are %v", roles)
		}
	})
}

// After a member was notified of its removal, it can still receive an earlier change of
// the members. That change does not make it a member again.
func TestEarlierChangeAfterRemoval(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		gone := sim.nodes[sim.leader().opt.Self.ID%3] // a follower
		m := gone.member
		m.mail.post(func() {
			m.disk.leave()
			s := m.log.State()
			m.disk.setMembership(s.Membership)
		})
		sim.removed(gone)
	})
}

// Membership changes that make no sense are refused.
func TestGroupErrors(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		l := sim.leader()
		other := sim.nodes[l.opt.Self.ID%3].member
		for name, c := range map[string]struct{ err, want error }{
			"add on a follower":    {other.Add(t.Context(), raftlog.MemberInfo{ID: 9, Address: "x:1"}), ErrNotLeader},
			"remove on a follower": {other.Remove(t.Context(), 1), ErrNotLeader},
			"remove nobody":        {l.Remove(t.Context(), 9), ErrNotMember},
			"replace nobody":       {l.Add(t.Context(), raftlog.MemberInfo{ID: 10, Address: "x:1", Replaces: 9}), ErrNotMember},
			"take in a stranger":   {l.AcceptHandshake(9, Handshake{Level: entry.Level, Number: 4}), ErrNotMember},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", name, c.err, c.want)
			}
		}
		if l.Add(t.Context(), raftlog.MemberInfo{ID: 9, Address: l.opt.Self.Address}) == nil {
			t.Error("two members have an address")
		}
		sim.must(l.Add(t.Context(), sim.nodes[2].self())) // the change was already requested
	})
}

// A member whose disk was rolled back is refused by the members to which it had
// acknowledged later entries, even after their restart.
func TestRolledBack(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		l := sim.nodeOf(sim.leader())
		m := sim.nodes[l.id%3]
		old := m.member.Handshake()
		sim.mustPut(l.member, 5, "a job")
		time.Sleep(time.Second)
		if err := l.member.AcceptHandshake(m.id, old); !errors.Is(err, ErrRolledBack) {
			t.Errorf("a log that lost acknowledged entries: %v", err)
		}
		m.kill(false)
		m.boot()
		time.Sleep(time.Second)
		l.kill(false)
		l.boot()
		sim.leader()
		old.Last = raftlog.Position{Index: 99, Term: 99}
		if err := l.member.AcceptHandshake(m.id, old); !errors.Is(err, ErrConnected) {
			t.Errorf("an earlier start of a connected member: %v", err)
		}
		sim.disconnect(m)
		if err := l.member.AcceptHandshake(m.id, old); !errors.Is(err, ErrRolledBack) {
			t.Errorf("an older life of a member: %v", err)
		}
	})
}

// A leader that reaches no majority acknowledges no change, ends all waits, and reports
// the reason.
func TestNoMajority(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		l := sim.leader()
		sim.part(sim.nodeOf(l))
		began := time.Now()
		if _, err := sim.put(l, "mail", engine.Spec{TTR: 60}, "lost"); !errors.Is(err, broker.ErrDeposed) {
			t.Errorf("a put without a majority: %v", err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v of fake time", took)
		}
		time.Sleep(time.Second)
		if sim.nodeOf(l).deposed.Load() == 0 {
			t.Error("its clients were not closed")
		}
		if lead := l.Lead(); lead.Epoch != 0 || l.Ready() == nil {
			t.Errorf("without a majority: %+v, ready: %v", lead, l.Ready())
		}
		if s, err := l.Status(); err != nil || s.Quorum {
			t.Errorf("its status: %+v, %v", s, err)
		}
		seen := false
		l.Broker().View(func(e *engine.Engine, _ int64) { seen = e.Stats().Ready == 0 })
		if !seen {
			t.Error("a view does not show the queue without the put")
		}
		sim.heal()
		sim.until("it is ready again", func() bool { return l.Ready() == nil })
	})
}

// When the leader's machine refuses connections, the others do not wait for an election
// timeout. A refusal by a machine that is not the leader's, or from an earlier term, has
// no effect.
func TestFastFailover(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		sim.refusals = true
		stop := sim.load(3)
		for range 6 {
			time.Sleep(time.Second)
			l := sim.leader()
			term := l.Lead().Term
			for _, m := range sim.nodes {
				if m.member != l {
					m.member.Refused(m.id%3+1, term-1)
					m.member.Refused(m.id, term)
				}
			}
			time.Sleep(300 * time.Millisecond)
			if lead := sim.leader().Lead(); lead.Term != term {
				sim.fatalf("there is another term after refusals that mean nothing: %+v", lead)
			}
			m := sim.nodeOf(l)
			began := time.Now()
			m.kill(false)
			sim.leader()
			if gap := time.Since(began); gap > 300*time.Millisecond {
				t.Errorf("no leader for %v", gap)
			}
			m.boot()
		}
		stop()
	})
}

// Followers exchange no messages, but their status still shows which members are
// reachable.
func TestReachable(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		unreachable := func(m *node) (n int) {
			s, err := m.member.Status()
			sim.must(err)
			for _, k := range s.Members {
				if !k.Reachable {
					n++
				}
			}
			return n
		}
		for _, m := range sim.nodes {
			for _, other := range sim.nodes {
				if m != other {
					sim.until("a member knows another", func() bool { return m.member.AcceptHandshake(other.id, other.member.Handshake()) == nil })
				}
			}
			sim.until("a member reaches all", func() bool { return unreachable(m) == 0 })
		}
		follower := sim.nodes[2]
		if sim.nodeOf(sim.leader()) == follower {
			follower = sim.nodes[1]
		}
		gone := 6 - follower.id - sim.leader().opt.Self.ID
		follower.member.Unreachable(gone)
		sim.until("the follower has lost one", func() bool { return unreachable(follower) == 1 })
	})
}

// A lost node is replaced by a node with the same address.
func TestReplaceAtAddress(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		l := sim.leader()
		lost, fresh := sim.nodes[l.opt.Self.ID%3], sim.node()
		lost.kill(true)
		added := fresh.self()
		added.Address, added.Replaces = lost.self().Address, lost.id
		sim.joinAs(fresh, added)
		sim.until("it has replaced the other one", func() bool { return sim.roles()[lost.id] == "" })
	})
}

// replace adds a node to the cluster in place of a member. It does not start the node.
func (sim *simulation) replace(old uint64, m *node) {
	sim.t.Helper()
	added := m.self()
	added.Replaces = old
	sim.admit(m, added)
}

// If a command that adds a member is interrupted, it can be repeated. The new learner
// replaces the one that never connected, and still replaces the member to be replaced.
func TestAbandonedLearner(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		time.Sleep(time.Second)
		l := sim.leader()
		old := sim.nodes[l.opt.Self.ID%3]
		old.kill(true)
		sim.must(l.Add(t.Context(), raftlog.MemberInfo{ID: 9, Address: "x:1", Replaces: old.id}))
		if err := l.Add(t.Context(), raftlog.MemberInfo{ID: 10, Address: "x:2", Replaces: old.id}); err == nil {
			t.Error("two members replace the same one")
		}
		sim.must(l.Add(t.Context(), raftlog.MemberInfo{ID: 10, Address: "x:1", Replaces: 9}))
		if roles := sim.roles(); roles[9] != "" || roles[10] != apitype.Learner || roles[old.id] == "" {
			sim.fatalf("after the second command the roles are %v", roles)
		}
		added := sim.node()
		self := added.self()
		self.Address = "x:1"
		sim.admit(added, self)
		added.boot()
		sim.until("the old member is replaced", func() bool {
			roles := sim.roles()
			return len(roles) == 3 && roles[added.id] == apitype.Voter && roles[old.id] == ""
		})
	})
}

// The next leader completes a replacement. The replaced member is notified when it
// returns.
func TestReplaceOutlivesLeader(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		time.Sleep(time.Second)
		l := sim.leader()
		dead := sim.nodes[l.opt.Self.ID%3]
		dead.kill(true)
		added := sim.node()
		sim.replace(dead.id, added)
		if err := l.Add(t.Context(), raftlog.MemberInfo{ID: 9, Address: "x:1", Replaces: dead.id}); err == nil {
			t.Error("a member is replaced twice")
		}
		sim.must(l.Transfer(t.Context(), 0))
		added.boot()
		sim.until("the dead member is replaced", func() bool { return sim.roles()[dead.id] == "" && sim.roles()[added.id] == apitype.Voter })
		dead.boot()
		sim.removed(dead)
	})
}

// A running member is replaced, although its vote is needed until then. A member that was
// down during the replacement is notified later.
func TestReplaceLiving(t *testing.T) {
	for _, n := range []int{2, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inSimulation(t, n, func(t *testing.T, sim *simulation) {
				time.Sleep(time.Second)
				l := sim.leader().opt.Self.ID
				old, asleep := sim.nodes[l%uint64(n)], sim.nodes[(l+1)%uint64(n)]
				if n > 2 {
					asleep.kill(true)
				}
				added := sim.node()
				sim.replace(old.id, added)
				added.boot()
				sim.removed(old)
				sim.until("the member is replaced", func() bool { return sim.roles()[added.id] == apitype.Voter })
				if n > 2 {
					asleep.boot()
					sim.until("it knows of that", func() bool { return reflect.DeepEqual(asleep.member.Membership(), sim.leader().Membership()) })
				}
			})
		})
	}
}

// The number of a removed member is not assigned to another member, even after a restart.
func TestNumbers(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		for n := range uint64(2) {
			time.Sleep(time.Second)
			last := sim.nodes[len(sim.nodes)-1]
			if sim.leader() == last.member {
				sim.must(sim.leader().Transfer(t.Context(), 0))
			}
			sim.must(sim.leader().Remove(t.Context(), last.id))
			sim.removed(last)
			for _, m := range sim.nodes {
				if m.member != nil && n == 1 {
					m.kill(true)
					m.boot()
				}
			}
			sim.join(sim.node())
			for _, k := range sim.leader().Membership().Members {
				if k.ID == 4+n && k.Number != 4+n {
					t.Errorf("the new member is %+v", k)
				}
			}
		}
	})
}

// A request for the status never waits, even within a turn.
func TestStatusDoesNotWait(t *testing.T) {
	inSimulation(t, 1, func(t *testing.T, sim *simulation) {
		l := sim.leader()
		release := make(chan struct{})
		l.mail.post(func() { <-release })
		time.Sleep(time.Second)
		if s, err := l.Status(); err != nil || s.Leader != 1 || s.Term != l.Lead().Term || len(s.Members) != 1 || !s.Members[0].Reachable {
			t.Errorf("%+v, %v", s, err)
		}
		close(release)
	})
}

// A member that was absent while another member was replaced takes part again. This is
// true even if it has only the address of the dead member, and not of the new one, which
// leads.
func TestNewcomerLeads(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		time.Sleep(time.Second)
		first := sim.nodeOf(sim.leader())
		away, lost := sim.nodes[first.id%3], sim.nodes[(first.id+1)%3]
		away.kill(false)
		joiner := sim.node()
		sim.join(joiner)
		sim.must(sim.leader().Remove(t.Context(), lost.id))
		sim.removed(lost)
		time.Sleep(time.Second) // the new member must have this information
		sim.must(sim.leader().Transfer(t.Context(), joiner.id))
		sim.until("the new member leads", func() bool { return sim.whoLeads() == joiner.member })
		first.kill(false)
		away.boot()
		if l := sim.leader(); l != joiner.member && l != away.member {
			t.Error("another member leads")
		}
		sim.mustPut(sim.leader(), 1, "a job")
		first.boot()
		sim.audit()
		away.member.inLoop(func() {
			if n := len(away.member.raft.unknown); n != 0 {
				t.Errorf("%d members are not known in the end", n)
			}
		})
	})
}
