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
	inWorld(t, 1, func(t *testing.T, w *world) {
		m := w.machines[0]
		for life := range 4 {
			for i := range 20 {
				if _, err := w.put(w.leader(), "mail", engine.Spec{TTR: 60, Delay: uint32(i % 3)}, fmt.Sprint("job", life, i)); err != nil {
					w.fatalf("%v", err)
				}
				if i%4 == 0 {
					w.must(w.delete(w.leader()))
				}
			}
			w.audit()
			m.kill(life%2 == 1)
			m.boot()
			w.leader()
			w.audit()
		}
	})
}

// What asks the raft loop is answered, or told that the member is closed, and nothing of it runs after that.
func TestAskWhileClosing(t *testing.T) {
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, 1)
			m := w.leader()
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
			w.close()
			asking.Wait()
		})
	}
}

// load puts, deletes and works at whoever leads until the world is told to stop.
func (w *world) load(clients int) (stop func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	for n := range 2 {
		k := &worker{w: w, rng: rand.New(rand.NewPCG(uint64(n), 6))}
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
				m := w.whoLeads()
				switch {
				case m == nil:
				case rng.IntN(3) == 0:
					w.delete(m)
				case rng.IntN(8) == 0:
					w.put(m, laterTube, engine.Spec{TTR: 60, Delay: uint32(3 + rng.IntN(8))}, fmt.Sprint("later job", k, n))
				default:
					w.put(m, fmt.Sprint("tube", rng.IntN(3)), engine.Spec{TTR: 60, Delay: uint32(rng.IntN(3))}, fmt.Sprint("job", k, n))
				}
			}
		})
	}
	return func() { close(done); all.Wait() }
}

// whoLeads returns a member that says so, or nil.
func (w *world) whoLeads() *Member {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.rng.Perm(len(w.machines)) {
		if m := w.machines[k].member; m != nil && m.Lead().Epoch != 0 {
			return m
		}
	}
	return nil
}

// Nothing that was acknowledged is lost, and all members have the same, whatever happens to a minority of them.
func TestLives(t *testing.T) {
	seeds.Each(t, 2, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) { emptyWorld(t, seed).live(seed) })
	})
}

// small makes the logs of members so small that one that is away for a while needs a walk.
func (w *world) small() {
	w.opt.Log.SegmentSize, w.opt.Log.Recent, w.opt.Keep = 8<<10, 4<<10, 32<<10
	w.opt.Journal.SegmentSize, w.opt.Journal.Sync = 16<<10, 200*time.Millisecond
}

// live lets members and their clients live through some mishaps.
func (w *world) live(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	w.refusals, w.patient = rng.IntN(2) == 0, rng.IntN(2) == 0
	w.small()
	size := 3 + 2*rng.IntN(2)
	w.offOf = 2 + rng.Uint64N(uint64(size-1)) // the first member's clock is the cluster's from the beginning
	w.grow(size)
	w.preload(1200)
	w.stop = w.load(3)
	for range 8 {
		time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
		w.mishap(rng)
		w.checkDelays()
	}
	w.recover()
	time.Sleep(4 * time.Second)
	before := w.acknowledged()
	time.Sleep(time.Second)
	w.stop()
	w.stop = nil
	if w.acknowledged() == before {
		w.fatalf("nothing is acknowledged though all is well")
	}
	w.audit()
	if w.logged("this leader does not have") > 0 {
		w.fatalf("a leader takes a member for one that knows better")
	}
	puts, deletes := w.asked.Acknowledged()
	w.t.Logf("%d members, %d puts and %d deletes acknowledged, %d snapshots", len(w.machines), puts, deletes, w.logged("the whole queue was received"))
	w.close()
}

// mishap lets something happen to a member, to the leader most often.
func (w *world) mishap(rng *rand.Rand) {
	l := w.leader()
	m := w.machineOf(l)
	if rng.IntN(3) == 0 {
		m = w.machines[rng.IntN(len(w.machines))]
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
		w.part(m)
		time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
		w.heal()
	case 3: // one way only
		w.mu.Lock()
		for _, o := range w.machines {
			w.cut[[2]uint64{o.id, m.id}] = true
		}
		w.mu.Unlock()
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
		w.heal()
	case 4:
		ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Second)
		l.Transfer(ctx, w.machines[rng.IntN(len(w.machines))].id) // it may be refused
		cancel()
	case 5: // all lose their power
		w.lagged = max(w.lagged, -l.offset())
		for _, o := range w.machines {
			o.kill(true)
		}
		for _, o := range w.machines {
			time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
			if !o.gone {
				o.boot()
			}
		}
	case 6:
		w.flap(rng)
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
		w.exchange(m, rng.IntN(2) == 0)
	case 10:
		w.hang(m, rng)
	case 11:
		w.restore(m, rng)
	}
}

// restore restores the disk of a machine from a copy that lacks its last start, and
// another machine takes its place.
func (w *world) restore(m *machine, rng *rand.Rand) {
	m.kill(rng.IntN(2) == 0)
	disk := m.disk.Crash(keptAll())
	m.boot()
	time.Sleep(time.Second + time.Duration(rng.IntN(2000))*time.Millisecond) // the others meet it
	m.kill(rng.IntN(2) == 0)
	m.disk = disk
	m.boot()
	w.condemned(m, ErrDamaged.Error())
	w.exchange(m, true)
}

// hang lets the disk of a machine hang for a while: its syncs, or writes. That machine or another one may be killed meanwhile.
func (w *world) hang(m *machine, rng *rand.Rand) {
	all := func(string) bool { return true }
	end := m.trouble.hang([]func(name string) bool{nil, all, isOfJournal, isOfLog}[rng.IntN(4)])
	time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
	victim := m
	switch rng.IntN(4) {
	case 0:
		victim = w.machines[rng.IntN(len(w.machines))]
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

// exchange lets another machine have a member in place of that of a machine, which is lost before.
func (w *world) exchange(old *machine, lost bool) {
	joiner := w.machine()
	self := joiner.self()
	if lost {
		old.kill(true)
		old.gone, self.Replaces = true, old.id
		w.joinAs(joiner, self)
		return
	}
	w.joinAs(joiner, self)
	w.until("the member is removed", func() bool {
		l := w.leader()
		if l == old.member {
			l.Transfer(w.t.Context(), joiner.id) // it may be declined at first
			return false
		}
		err := l.Remove(w.t.Context(), old.id)
		return err == nil || errors.Is(err, ErrNotMember)
	})
	w.removed(old)
	old.gone = true
}

// flap cuts some ways for a short time, again and again.
func (w *world) flap(rng *rand.Rand) {
	for range 5 {
		w.mu.Lock()
		for _, from := range w.machines {
			for _, to := range w.machines {
				if rng.IntN(2) == 0 {
					w.cut[[2]uint64{from.id, to.id}] = true
				}
			}
		}
		w.mu.Unlock()
		time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
		w.heal()
		time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
	}
}

// recover ends all faults.
func (w *world) recover() {
	w.heal()
	for _, m := range w.machines {
		if m.member == nil && !m.gone {
			m.boot()
		}
	}
}

// An entry that comes when the epoch is over already is not taken for one of the epoch: it may be of the next
// leader. The raft loop ends the epoch before it hands over such an entry, also in the middle of a turn.
func TestEntryAfterEpoch(t *testing.T) {
	m := &Member{opt: Options{Logger: slog.New(slog.DiscardHandler)}, lifecycle: lifecycle{turns: make(chan struct{}, 1)}, broker: broker.New(engine.New(engine.Options{}), broker.Options{})}
	m.turn.m, m.turn.epoch, m.phase = m, 1, draining
	m.queue.add([]core.Apply{{Entries: []*raftpb.Entry{{}}}})
	if m.turn.apply(0); m.turn.epoch != 0 || m.queue.isEmpty() {
		t.Errorf("the entry was applied; the epoch is %d", m.turn.epoch)
	}
}

// A leader that gives up an epoch before its engine has heard of it serves in the next one.
func TestResignBeforeEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := emptyWorld(t, 1)
		resigned := false
		w.opt.testHook = func(m *Member, apply []core.Apply) []core.Apply {
			m.mail.post(func() {
				time.Sleep(time.Millisecond) // a turn applies it meanwhile, and what the core hears of that is in the mailbox
				m.mail.post(func() {
					if c := m.raft.core; c.Epoch() != 0 && !resigned {
						c.Resign()
						resigned = true
					}
				})
			})
			return apply
		}
		w.grow(1)
		if !resigned {
			t.Error("it has not resigned: this shows nothing")
		}
		w.audit()
		w.close()
	})
}

// A member whose clock was a day ahead, until it heard the leader's, does not wait a day before it tries again what its journal
// could not take.
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

// What a member has acknowledged in an earlier term, and what comes late, says nothing of the entry that has the index
// by now: the member would count as rolled back.
func TestLateAcknowledgement(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		time.Sleep(time.Second) // all know that they vote
		first := w.machineOf(w.leader())
		first.kill(false)
		w.leader()
		first.boot()
		l := w.leader() // in a later term
		m := w.machines[0]
		if m.member == l {
			m = w.machines[1]
		}
		w.part(m)
		for range 5 {
			_, err := w.put(l, "mail", engine.Spec{TTR: 60}, "new")
			w.must(err)
		}
		earlier, last := l.Lead().Term-1, l.log.Last().Index
		l.Step(&raftpb.Message{
			Type: raftpb.MsgAppResp.Enum(), From: &m.id, To: &l.opt.Self.ID, Term: &earlier, Index: &last,
		})
		if err := l.AcceptHandshake(m.id, m.member.Handshake()); err != nil {
			t.Errorf("the member is refused: %v", err)
		}
		w.heal()
	})
}
