package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/cluster/core"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// A cluster with one member serves clients, and still does after it was killed.
func TestAlone(t *testing.T) {
	inSimulation(t, 1, func(t *testing.T, sim *simulation) {
		m := sim.nodes[0]
		for life := range 4 {
			for i := range 20 {
				if _, err := sim.put(sim.leader(), "mail", engine.Spec{TTR: 60, Delay: uint32(i % 3)}, fmt.Sprint("job", life, i)); err != nil {
					sim.fatalf("%v", err)
				}
				if i%4 == 0 {
					sim.must(sim.delete(sim.leader()))
				}
			}
			sim.audit()
			m.kill(life%2 == 1)
			m.boot()
			sim.leader()
			sim.audit()
		}
	})
}

// Each request to the raft loop is answered, or gets the error that the member is closed.
// No request runs after that.
func TestAskWhileClosing(t *testing.T) {
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			sim := newSimulation(t, 1, 1)
			m := sim.leader()
			var asking sync.WaitGroup
			for range 4 {
				asking.Go(func() {
					for {
						var s Status
						if !m.inLoop(func() { s = m.raft.status() }) {
							return
						}
						if len(s.Members) != 1 {
							t.Errorf("%+v", s)
							return
						}
					}
				})
			}
			sim.close()
			asking.Wait()
		})
	}
}

// load makes clients put, delete and process jobs on the current leader until stop is
// called.
func (sim *simulation) load(clients int) (stop func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	for n := range 2 {
		k := &worker{sim: sim, rng: rand.New(rand.NewPCG(uint64(n), 6))}
		all.Go(func() { k.run(done) })
	}
	for k := range clients {
		rng := rand.New(rand.NewPCG(uint64(k), 5))
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				case <-time.After(time.Duration(1+rng.IntN(40)) * time.Millisecond):
				}
				m := sim.whoLeads()
				switch {
				case m == nil:
				case rng.IntN(3) == 0:
					sim.delete(m)
				case rng.IntN(8) == 0:
					sim.put(m, laterTube, engine.Spec{TTR: 60, Delay: uint32(3 + rng.IntN(8))}, fmt.Sprint("later job", k, n))
				default:
					sim.put(m, fmt.Sprint("tube", rng.IntN(3)), engine.Spec{TTR: 60, Delay: uint32(rng.IntN(3))}, fmt.Sprint("job", k, n))
				}
			}
		})
	}
	return func() { close(done); all.Wait() }
}

// whoLeads returns a member that reports to be the leader, or nil.
func (sim *simulation) whoLeads() *Member {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for _, k := range sim.rng.Perm(len(sim.nodes)) {
		if m := sim.nodes[k].member; m != nil && m.Lead().Epoch != 0 {
			return m
		}
	}
	return nil
}

// awaitOther waits until a member other than old is the leader.
func (sim *simulation) awaitOther(old *Member) {
	sim.t.Helper()
	sim.until("another one leads", func() bool { m := sim.whoLeads(); return m != nil && m != old })
}

// If any minority of the members fails in any way, no acknowledged change is lost, and
// all members have the same queue.
func TestLives(t *testing.T) {
	seeds.Each(t, 2, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) { emptySimulation(t, seed).live(seed) })
	})
}

// small limits the members' logs, so that a member that is absent for a while needs a
// snapshot.
func (sim *simulation) small() {
	sim.opt.Log.SegmentSize, sim.opt.Log.Recent, sim.opt.Keep = 8<<10, 4<<10, 32<<10
	sim.opt.Journal.SegmentSize, sim.opt.Journal.Sync = 16<<10, 200*time.Millisecond
}

// live runs members and clients with some failures.
func (sim *simulation) live(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	sim.refusals, sim.patient = rng.IntN(2) == 0, rng.IntN(2) == 0
	sim.small()
	if seed%5 >= 2 {
		sim.opt.Engine.Policies = engine.PolicyFunc(somePolicies)
	}
	size := 3 + 2*rng.IntN(2)
	sim.offOf = 2 + rng.Uint64N(uint64(size-1)) // the cluster starts with the first member's clock
	sim.grow(size)
	sim.preload(1200)
	sim.stop = sim.load(3)
	for range 8 {
		time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
		sim.mishap(rng)
		sim.checkDelays()
	}
	sim.recover()
	time.Sleep(4 * time.Second)
	before := sim.acknowledged()
	time.Sleep(time.Second)
	sim.stop()
	sim.stop = nil
	if sim.acknowledged() == before {
		sim.fatalf("no change is acknowledged in a healthy cluster")
	}
	sim.audit()
	if sim.logged("this leader does not have") > 0 {
		sim.fatalf("a leader treats a member as more recent")
	}
	puts, deletes := sim.asked.Acknowledged()
	sim.t.Logf("%d members, %d puts and %d deletes acknowledged, %d snapshots", len(sim.nodes), puts, deletes, sim.logged("the whole queue was received"))
	sim.close()
}

// mishap causes a failure of a member, most often of the leader.
func (sim *simulation) mishap(rng *rand.Rand) {
	l := sim.leader()
	m := sim.nodeOf(l)
	if rng.IntN(3) == 0 {
		m = sim.nodes[rng.IntN(len(sim.nodes))]
	}
	if m.member == nil {
		return
	}
	switch rng.IntN(12) {
	case 0, 1:
		m.kill(rng.IntN(2) == 0)
		time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond) // long enough that the others cut the entries that it needs
		m.boot()
	case 2:
		sim.part(m)
		time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
		sim.heal()
	case 3: // in one direction only
		sim.mu.Lock()
		for _, o := range sim.nodes {
			sim.cut[[2]uint64{o.id, m.id}] = true
		}
		sim.mu.Unlock()
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
		sim.heal()
	case 4:
		ctx, cancel := context.WithTimeout(sim.t.Context(), 3*time.Second)
		l.Transfer(ctx, sim.nodes[rng.IntN(len(sim.nodes))].id) // can be refused
		cancel()
	case 5: // all members lose power
		sim.lagged = max(sim.lagged, -l.offset())
		for _, o := range sim.nodes {
			o.kill(true)
		}
		for _, o := range sim.nodes {
			time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
			if !o.gone {
				o.boot()
			}
		}
	case 6:
		sim.flap(rng)
	case 7: // the process is paused
		release := make(chan struct{})
		m.member.mail.post(func() { <-release })
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
		close(release)
	case 8: // no file on its disk can grow
		m.trouble.fill(func(string) bool { return true })
		time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
		m.trouble.fill(nil)
	case 9:
		sim.exchange(m, rng.IntN(2) == 0)
	case 10:
		sim.hang(m, rng)
	case 11:
		sim.restore(m, rng)
	}
}

// restore restores the disk of a node from a copy that lacks its last start. Another node
// then replaces it.
func (sim *simulation) restore(m *node, rng *rand.Rand) {
	m.kill(rng.IntN(2) == 0)
	disk := m.disk.Crash(nil)
	m.boot()
	time.Sleep(time.Second + time.Duration(rng.IntN(2000))*time.Millisecond) // the other members connect to it
	m.kill(rng.IntN(2) == 0)
	m.disk = disk
	m.boot()
	sim.condemned(m, ErrDamaged.Error())
	sim.exchange(m, true)
}

// hang makes the syncs or writes of a node's disk hang for some time. During this time,
// that node or another can be killed.
func (sim *simulation) hang(m *node, rng *rand.Rand) {
	all := func(string) bool { return true }
	end := m.trouble.hang([]func(name string) bool{nil, all, isOfJournal, isOfLog}[rng.IntN(4)])
	time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
	victim := m
	switch rng.IntN(4) {
	case 0:
		victim = sim.nodes[rng.IntN(len(sim.nodes))]
		fallthrough
	case 1:
		if victim.member != nil {
			victim.kill(rng.IntN(2) == 0)
			time.Sleep(time.Duration(rng.IntN(2000)) * time.Millisecond)
			victim.boot()
		}
	}
	end()
}

// exchange replaces the member of a node with a member on another node. If lost is true,
// the old member is lost first.
func (sim *simulation) exchange(old *node, lost bool) {
	joiner := sim.node()
	self := joiner.self()
	if lost {
		old.kill(true)
		old.gone, self.Replaces = true, old.id
		sim.joinAs(joiner, self)
		return
	}
	sim.joinAs(joiner, self)
	sim.until("the member is removed", func() bool {
		l := sim.leader()
		if l == old.member {
			l.Transfer(sim.t.Context(), joiner.id) // can be declined at first
			return false
		}
		err := l.Remove(sim.t.Context(), old.id)
		return err == nil || errors.Is(err, ErrNotMember)
	})
	sim.removed(old)
	old.gone = true
}

// flap repeatedly cuts some links for a short time.
func (sim *simulation) flap(rng *rand.Rand) {
	for range 5 {
		sim.mu.Lock()
		for _, from := range sim.nodes {
			for _, to := range sim.nodes {
				if rng.IntN(2) == 0 {
					sim.cut[[2]uint64{from.id, to.id}] = true
				}
			}
		}
		sim.mu.Unlock()
		time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
		sim.heal()
		time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
	}
}

// recover ends all faults.
func (sim *simulation) recover() {
	sim.heal()
	for _, m := range sim.nodes {
		if m.member == nil && !m.gone {
			m.boot()
		}
	}
}

// An entry that arrives after the end of the epoch is not mistaken for an entry of the
// epoch, because it can be the next leader's. The raft loop ends the epoch before it
// passes on such an entry, even in the middle of a turn.
func TestEntryAfterEpoch(t *testing.T) {
	m := &Member{opt: Options{Logger: slog.New(slog.DiscardHandler)}, lifecycle: lifecycle{turns: make(chan struct{}, 1)}, broker: broker.New(engine.New(engine.Options{}), broker.Options{})}
	m.turn.m, m.turn.epoch, m.phase = m, 1, draining
	m.queue.add([]core.Apply{{Entries: []*raftpb.Entry{{}}}})
	if m.turn.apply(0); m.turn.epoch != 0 || m.queue.isEmpty() {
		t.Errorf("the entry was applied; the epoch is %d", m.turn.epoch)
	}
}

// A leader that resigns an epoch before its engine is notified of the epoch serves
// clients in the next epoch.
func TestResignBeforeEngine(t *testing.T) {
	resigned := false
	set := func(sim *simulation) {
		sim.opt.testHook = func(m *Member, apply []core.Apply) []core.Apply {
			m.mail.post(func() {
				time.Sleep(time.Millisecond) // a turn applies it, and the notification of the core is in the mailbox
				m.mail.post(func() {
					if c := m.raft.core; c.Lead().Epoch != 0 && !resigned {
						c.Resign()
						resigned = true
					}
				})
			})
			return apply
		}
	}
	inSimulationOf(t, 1, set, func(t *testing.T, _ *simulation) {
		if !resigned {
			t.Error("it has not resigned: this shows nothing")
		}
	})
}

// A member's clock is a day ahead until it receives the leader's time. Even then, the
// member does not wait a day before it retries a write that its journal has refused.
func TestRetryAfterClockIsSetBack(t *testing.T) {
	m := &Member{opt: Options{Logger: slog.New(slog.DiscardHandler)}}
	m.turn.m = m
	now := int64(time.Hour)
	m.turn.retryAt = now + int64(recoverPause)/2
	if next := m.turn.apply(now); next != m.turn.retryAt {
		t.Errorf("tried again before its time, at %d", now)
	}
	m.turn.retryAt = now + 24*int64(time.Hour)
	if m.turn.apply(now); m.turn.retryAt != 0 {
		t.Error("it waits for a day")
	}
}

// A late acknowledgment from an earlier term does not apply to the entry that now has its
// index. Otherwise, the member would count as rolled back.
func TestLateAcknowledgement(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		time.Sleep(time.Second) // all members know that they are voters
		first := sim.nodeOf(sim.leader())
		first.kill(false)
		sim.leader()
		first.boot()
		l := sim.leader() // in a later term
		m := sim.nodes[l.opt.Self.ID%3]
		sim.part(m)
		sim.mustPut(l, 5, "new")
		earlier, last := l.Lead().Term-1, l.log.Last().Index
		l.Step(&raftpb.Message{
			Type: raftpb.MsgAppResp.Enum(), From: &m.id, To: &l.opt.Self.ID, Term: &earlier, Index: &last,
		})
		if err := l.AcceptHandshake(m.id, m.member.Handshake()); err != nil {
			t.Errorf("the member is refused: %v", err)
		}
		sim.heal()
	})
}
