package cluster

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// condemned waits until the member of a node has stopped permanently, and checks that it
// refuses to start again.
func (sim *simulation) condemned(m *node, why string) {
	sim.t.Helper()
	sim.until("the member stops", func() bool { return m.member.Err() != nil })
	m.kill(false)
	for _, err := range []error{m.start(), func() error { _, err := Inspect(m.disk, dir); return err }()} {
		if err == nil || !strings.Contains(err.Error(), why) {
			sim.fatalf("member %d starts, or its error has no reason: %v", m.id, err)
		}
	}
	m.gone = true
}

// If one disk is restored from a copy, and members are stopped and started in any order,
// no acknowledged change is lost.
func TestRestoredInAnyOrder(t *testing.T) {
	seeds.Each(t, 6, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) { emptySimulation(t, seed).restoreOne(rand.New(rand.NewPCG(seed, 7))) })
	})
}

// restoreOne restores the disk of one of three members from a copy while another member
// is absent. So only the third member has all entries. No majority must form without it,
// which is prevented by the members that have recorded the start missing from the copy.
func (sim *simulation) restoreOne(rng *rand.Rand) {
	sim.grow(3)
	time.Sleep(time.Second)
	order := rng.Perm(3)
	whole, away, old := sim.nodes[order[0]], sim.nodes[order[1]], sim.nodes[order[2]]
	old.kill(rng.IntN(2) == 0)
	disk := old.disk.Crash(nil)
	old.boot()
	time.Sleep(time.Second) // all members connect to each other
	away.kill(false)
	sim.mustPut(nil, 10, "a job")
	stop := []*node{whole, old}
	start := []*node{away, old, whole}
	rng.Shuffle(len(stop), func(i, k int) { stop[i], stop[k] = stop[k], stop[i] })
	rng.Shuffle(len(start), func(i, k int) { start[i], start[k] = start[k], start[i] })
	for _, m := range stop {
		m.kill(rng.IntN(2) == 0)
		time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
	}
	old.disk = disk
	for _, m := range start {
		m.boot()
		time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
	}
	if sim.fault != "" {
		time.Sleep(10 * time.Second)
		for _, m := range sim.nodes {
			if err := m.member.Err(); err != nil {
				sim.fatalf("%v", err)
			}
		}
	} else {
		sim.condemned(old, "this member must join again: its disk lacks data that it had reported to member")
		sim.exchange(old, true)
	}
	sim.mustPut(sim.leader(), 1, "after it")
	sim.audit()
	sim.close()
}

// If a member's log alone contains a committed entry, the member acknowledges nothing to
// a leader without that entry. Both report the contradiction.
func TestContradiction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulation(t, 1, 3)
		time.Sleep(time.Second)
		whole := sim.nodeOf(sim.leader())
		away, old := sim.nodes[whole.id%3], sim.nodes[(whole.id+1)%3]
		disk := old.disk.Crash(nil) // contains a start that all others have recorded
		away.kill(false)
		sim.mustPut(whole.member, 10, "acknowledged by two")
		time.Sleep(time.Second)
		whole.kill(true)
		old.kill(true)
		old.disk = disk
		away.boot()
		old.boot()
		leader := sim.leader() // Raft's limit: no member has recorded the lost entries
		whole.boot()
		sim.condemned(whole, "this member must join again: its committed entries")
		if sim.logged("a member has committed entries that this leader lacks") == 0 {
			t.Error("the leader does not report the conflict")
		}
		if s := sim.statusOf(sim.nodeOf(leader)); !s.of(whole.id).KeepCopy || s.of(away.id).KeepCopy {
			t.Errorf("the leader's status: %+v", s)
		}
		if leader.Err() != nil {
			t.Errorf("the leader has stopped: %v", leader.Err())
		}
		sim.abandon() // acknowledged changes are lost
	})
}

// If a copy of a member's directory runs next to the original, it is detected and stops.
// The original continues.
func TestCopy(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		time.Sleep(time.Second)
		l := sim.leader()
		original := sim.nodes[l.opt.Self.ID%3]
		elsewhere := &node{sim: sim, id: original.id, disk: original.disk.Crash(nil), links: map[uint64]*link{}}
		elsewhere.boot()
		copied := elsewhere.member
		for range 20 {
			err := l.AcceptHandshake(original.id, copied.Handshake())
			if !errors.Is(err, ErrConnected) {
				t.Fatalf("the copy is accepted: %v", err)
			}
			copied.Rejected(l.opt.Self.ID, err)
			time.Sleep(time.Second)
		}
		sim.until("the copy has stopped", func() bool { return errors.Is(copied.Err(), ErrCopy) })
		elsewhere.kill(false)
		if err := elsewhere.start(); !errors.Is(err, ErrCopy) {
			t.Errorf("the copy starts again: %v", err)
		}
		sim.must(l.AcceptHandshake(original.id, original.member.Handshake()))
	})
}

// If the majority is lost and the last member's disk needs an installation, the member
// continues if the operator confirms it.
func TestRecoverCondemned(t *testing.T) {
	disk := emptyDisk()
	must(t, Init(disk, dir, raftlog.MemberInfo{ID: 1, Address: "10.0.0.1:11400"}))
	log, err := raftlog.Open(disk, LogDir(dir), raftlog.Options{})
	must(t, err)
	must(t, errors.Join(log.SetFatalReason("it is old"), log.Close()))
	if _, err := Inspect(disk, dir); !errors.Is(err, ErrDamaged) {
		t.Fatalf("%v", err)
	}
	_, err = Recover(disk, dir, raftlog.MemberInfo{ID: 2, Address: "10.0.0.1:11400"})
	must(t, err)
	_, err = Inspect(disk, dir)
	must(t, err)
}
