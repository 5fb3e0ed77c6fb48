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

// A cluster of one serves, and serves again after it was killed.
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

// Each request to the raft loop is answered, or is told that the member is closed. No
// request runs after that.
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

// load puts, deletes and works at the current leader until stop is called.
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

// whoLeads returns a member that says so, or nil.
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

// awaitOther waits until another member than old leads.
func (sim *simulation) awaitOther(old *Member) {
	sim.t.Helper()
	sim.until("another one leads", func() bool { m := sim.whoLeads(); return m != nil && m != old })
}

// Nothing that was acknowledged is lost, and all members have the same, whatever happens
// to a minority of them.
func TestLives(t *testing.T) {
	seeds.Each(t, 2, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) { emptySimulation(t, seed).live(seed) })
	})
}

// small makes the logs of members so small that one that is away for a while needs a
// walk.
func (sim *simulation) small() {
	sim.opt.Log.SegmentSize, sim.opt.Log.Recent, sim.opt.Keep = 8<<10, 4<<10, 32<<10
	sim.opt.Journal.SegmentSize, sim.opt.Journal.Sync = 16<<10, 200*time.Millisecond
}

// live lets members and their clients live through some mishaps.
func (sim *simulation) live(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	sim.refusals, sim.patient = rng.IntN(2) == 0, rng.IntN(2) == 0
	sim.small()
	if seed%5 >= 2 {
		sim.opt.Engine.Policies = engine.PolicyFunc(somePolicies)
	}
	size := 3 + 2*rng.IntN(2)
	sim.offOf = 2 + rng.Uint64N(uint64(size-1)) // the first member's clock is the cluster's from the beginning
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
		sim.fatalf("nothing is acknowledged though all is well")
	}
	sim.audit()
	if sim.logged("this leader does not have") > 0 {
		sim.fatalf("a leader takes a member for one that knows better")
	}
	puts, deletes := sim.asked.Acknowledged()
	sim.t.Logf("%d members, %d puts and %d deletes acknowledged, %d snapshots", len(sim.nodes), puts, deletes, sim.logged("the whole queue was received"))
	sim.close()
}

// mishap lets something happen to a member, to the leader most often.
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
		time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond) // long enough that the others cut what it needs
		m.boot()
	case 2:
		sim.part(m)
		time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
		sim.heal()
	case 3: // one way only
		sim.mu.Lock()
		for _, o := range sim.nodes {
			sim.cut[[2]uint64{o.id, m.id}] = true
		}
		sim.mu.Unlock()
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
		sim.heal()
	case 4:
		ctx, cancel := context.WithTimeout(sim.t.Context(), 3*time.Second)
		l.Transfer(ctx, sim.nodes[rng.IntN(len(sim.nodes))].id) // it may be refused
		cancel()
	case 5: // all lose their power
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
	case 7: // it stands still
		release := make(chan struct{})
		m.member.mail.post(func() { <-release })
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
		close(release)
	case 8: // no file of its disk can become larger
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

// restore restores the disk of a node from a copy that lacks its last start, and
// another node takes its place.
func (sim *simulation) restore(m *node, rng *rand.Rand) {
	m.kill(rng.IntN(2) == 0)
	disk := m.disk.Crash(keptAll())
	m.boot()
	time.Sleep(time.Second + time.Duration(rng.IntN(2000))*time.Millisecond) // the others meet it
	m.kill(rng.IntN(2) == 0)
	m.disk = disk
	m.boot()
	sim.condemned(m, ErrDamaged.Error())
	sim.exchange(m, true)
}

// hang lets the syncs or writes of a node's disk hang for a while. That node or another
// can be killed during this time.
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

// exchange replaces the member of a node by a member on another node. If lost, the old
// one is lost first.
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
			l.Transfer(sim.t.Context(), joiner.id) // it may be declined at first
			return false
		}
		err := l.Remove(sim.t.Context(), old.id)
		return err == nil || errors.Is(err, ErrNotMember)
	})
	sim.removed(old)
	old.gone = true
}

// flap cuts some links for a short time, again and again.
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

// An entry that arrives after the end of the epoch is not taken for an entry of the
// epoch, because it can be an entry of the next leader. The raft loop ends the epoch
// before it passes such an entry on, even in the middle of a turn.
func TestEntryAfterEpoch(t *testing.T) {
	m := &Member{opt: Options{Logger: slog.New(slog.DiscardHandler)}, lifecycle: lifecycle{turns: make(chan struct{}, 1)}, broker: broker.New(engine.New(engine.Options{}), broker.Options{})}
	m.turn.m, m.turn.epoch, m.phase = m, 1, draining
	m.queue.add([]core.Apply{{Entries: []*raftpb.Entry{{}}}})
	if m.turn.apply(0); m.turn.epoch != 0 || m.queue.isEmpty() {
		t.Errorf("the entry was applied; the epoch is %d", m.turn.epoch)
	}
}

// A leader that gives up an epoch before its engine has heard of it serves in the next
// one.
func TestResignBeforeEngine(t *testing.T) {
	resigned := false
	set := func(sim *simulation) {
		sim.opt.testHook = func(m *Member, apply []core.Apply) []core.Apply {
			m.mail.post(func() {
				time.Sleep(time.Millisecond) // a turn applies it meanwhile, and what the core hears of that is in the mailbox
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

// A member whose clock was a day ahead, until it heard the leader's, does not wait a day
// before it tries again what its journal could not take.
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

// A late acknowledgement from an earlier term does not apply to the entry that now has
// its index. Otherwise the member would count as rolled back.
func TestLateAcknowledgement(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		time.Sleep(time.Second) // all know that they vote
		first := sim.nodeOf(sim.leader())
		first.kill(false)
		sim.leader()
		first.boot()
		l := sim.leader() // in a later term
		m := sim.nodes[0]
		if m.member == l {
			m = sim.nodes[1]
		}
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
