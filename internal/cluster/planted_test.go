package cluster

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/cluster/core"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// A fault is a planted fault. The table lists the planted faults of the cluster packages
// and the tests that detect them. A number is the number of seeds that a simulation
// needs; an adversary creates the situation in which the fault does harm.
//
//	a vote is answered before its sync                      core: adversary
//	an append is answered before its sync                   core: 19 seeds; cluster: 2
//	a job in flight is cleaned                              journal: 6
//	the mark of a put in flight is not counted              journal: 20
//	the mark is ahead of its changes                        journal: 1
//	the log is cut at a mark that is not synced             core, journal, cluster: 1
//	the last entry of another leader is skipped             cluster: 1
//	there is no lease; a lease holds during a transfer      core: adversaries
//	a vote directly after a start                           core: adversary
//	the clock is not carried over                           core: 1
//	roles are not written before a cut                      core (TestPlantedRoles): 3
//	a snapshot contains changes that are not committed      cluster: adversary
//	a snapshot claims a later entry than it contains        cluster: 1
//	a snapshot that Raft does not want is installed         core: 77
//	Raft learns of a snapshot before it is installed        core: 2
//	Raft learns of later entries first                      core: 290
//	a lost offer is not repeated                            core: 14
//	timers expire on a follower                             cluster: 19
//	the handshake of a rolled-back disk is accepted         cluster: adversary
//	a rolled-back disk counts up to a known start           cluster: adversary
//	an engine that applied dropped changes is kept          cluster: 2
//	a leader serves before all members sent their clients   cluster (TestPlantedClients): 1
//	a reply leaves the last update of a session valid       cluster (TestPlantedClients): 5
//	the claim of a stale holder wins                        cluster (TestPlantedClients): 30
//	a late reply of an old stream is delivered              cluster (TestPlantedClients): 7
//
// These were planted manually, and make a test fail:
//
//	a request that waits for the loop counts as committed   TestLives: 1
//	a kept engine keeps its reservations                    TestLives: 2
//	an entry is applied after the end of its epoch          TestEntryAfterEpoch
//	a proposal has no epoch                                 core: TestTranscripts, refusal.txt
//	a refused proposal leaves a hole                        core: TestSimulation, TestTranscripts
//	the hard state is not copied before a cut               raftlog: TestPowerCuts
//	a journal is ahead of the commit at the start           core: Raft panics in the first seeds
//	a deposed leader answers waiting reserves               conversation: TestDeposed
type fault string

const (
	skippedEntry fault = "the last entry of another leader is skipped"
	unsyncedMark fault = "the log is cut at a mark that is not synced"
	earlyAnswer  fault = "an answer is sent before its sync"
	claimsMore   fault = "a snapshot claims an entry more than it contains"
	followerTick fault = "timers expire on a follower"
	keptEngine   fault = "an engine that applied dropped changes is kept"

	forgottenPeer fault = "the handshake of a rolled-back disk is accepted"
	namelessStart fault = "a rolled-back disk has counted up to the known start"
	ofEngine      fault = "a snapshot contains uncommitted changes of a leader"
	endlessLease  fault = "the lease has no end"

	earlyService fault = "a leader serves before all members have sent their clients"
	keptUpdate   fault = "a reply leaves the last update valid"
	staleClaim   fault = "the claim of a stale holder wins"
	lateReply    fault = "a late reply of an old stream is delivered"

	droppedEntry fault = "acknowledged entries are dropped"
)

// found is the value with which a simulation with a planted fault panics.
type found string

// finds returns the effect of a planted fault in a life of a simulation.
func finds(t *testing.T, seed uint64, p fault, live func(sim *simulation)) (what string) {
	synctest.Test(t, func(t *testing.T) {
		sim := emptySimulation(t, seed)
		sim.fault = p
		defer func() {
			r := recover()
			if r == nil {
				return
			}
			f, ok := r.(found)
			if !ok {
				panic(r)
			}
			what = string(f)
			sim.abandon()
		}()
		live(sim)
	})
	return what
}

// The simulation detects each planted fault. Otherwise, its successful runs would prove
// nothing.
func TestPlanted(t *testing.T) {
	if seeds.Race {
		t.Skip("the race detector finds nothing more here than in TestLives")
	}
	for p, seed := range map[fault]uint64{
		skippedEntry: 1, unsyncedMark: 1, earlyAnswer: 2590957401, claimsMore: 246767346, followerTick: 1, keptEngine: 2500824646,
	} {
		t.Run(string(p), func(t *testing.T) {
			seeds.Find(t, seed, func(t *testing.T, seed uint64) string {
				return finds(t, seed, p, func(sim *simulation) { sim.live(seed) })
			})
		})
	}
}

// skipLast drops the last entry of an earlier term if it would be applied together with
// the first entry of this term.
func skipLast(m *Member, apply []core.Apply) []core.Apply {
	if lead := m.raft.core.Lead().Leader; lead != m.opt.Self.ID {
		return apply
	}
	for i := range apply {
		entries := slices.Clone(apply[i].Entries)
		for k := 1; k < len(entries); k++ {
			if last := entries[k-1]; len(entries[k].GetData()) == 0 && last.GetTerm() < entries[k].GetTerm() {
				entries[k-1] = &raftpb.Entry{Index: last.Index, Term: last.Term, Type: raftpb.EntryNormal.Enum()}
			}
		}
		apply[i].Entries = entries
	}
	return apply
}

// lateIf returns the time by which a sync is acknowledged too early.
func lateIf(planted bool) time.Duration {
	if planted {
		return 100 * time.Millisecond
	}
	return 0
}

// forgetLost makes the member forget that its engine has applied changes that might never
// be committed.
func (m *Member) forgetLost() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.proposals.lost = false
}

// tickOn makes timers expire on a follower.
func (m *Member) tickOn() {
	for !m.stopped() {
		m.broker.View(func(e *engine.Engine, now int64) {
			if m.turn.epoch == 0 && m.currentPhase() != draining {
				e.Tick(now)
			}
		})
		time.Sleep(20 * time.Millisecond)
	}
}

// forget makes the member forget another member or, unless all is true, only the name of
// its start.
func (m *Member) forget(id uint64, all bool) {
	m.inLoop(func() {
		p := m.raft.peer(id)
		if p.recorded.Name = 0; all {
			p.recorded, p.acknowledged = raftlog.Peer{}, raftlog.Position{}
		}
	})
}

// sendEngine sends the engine's jobs instead of the journal's, and claims that they
// include more entries than the last applied one.
func (m *Member) sendEngine(w io.Writer, more uint64) error {
	disk := memfs.New()
	j := journal.New(journal.Options{Epoch: m.clock.zero, Member: true, Sync: time.Second})
	if _, err := j.Open(disk, dir, engine.New(engine.Options{Logged: true})); err != nil {
		return err
	}
	var err error
	m.broker.View(func(e *engine.Engine, _ int64) {
		at := m.turn.applied
		at.Index += more
		changes := slices.Collect(e.Snapshots)
		changes = append(changes, engine.Change{Kind: engine.LastID, ID: e.LastID()})
		err = j.AppendCommitted(changes, at)
	})
	if err = errors.Join(err, j.Close()); err != nil {
		return err
	}
	b, err := j.Backup()
	if err != nil {
		return err
	}
	defer b.Close()
	if err := writeMembership(w, m.Membership()); err != nil {
		return err
	}
	return b.Write(w)
}

// Random runs hardly ever produce the situations in which these faults do harm.
var adversaries = []struct {
	fault fault
	plays func(sim *simulation)
}{
	{forgottenPeer, rollBack},
	{namelessStart, func(sim *simulation) { sim.restoreOne(rand.New(rand.NewPCG(sim.rng.Uint64(), 7))) }},
	{ofEngine, snapshotOfLeader},
	{endlessLease, standStill},
}

// Without a protection, its adversary does harm. With the protection, it does not.
func TestAdversaries(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	for _, a := range adversaries {
		t.Run(string(a.fault), func(t *testing.T) {
			seeds.Each(t, 1, func(t *testing.T, seed uint64) { finds(t, seed, "", a.plays) }) // fails if the adversary does harm
			seeds.Find(t, 1, func(t *testing.T, seed uint64) string { return finds(t, seed, a.fault, a.plays) })
		})
	}
}

// The simulation stops if a member has lost an entry that it acknowledged in this life.
// Otherwise, the leader would resend that entry after each rejection, and each heartbeat
// would repeat this.
func TestLostEntryIsFound(t *testing.T) {
	if what := finds(t, 1, droppedEntry, dropEntry); !strings.Contains(what, "has lost entry") {
		t.Errorf("found: %q", what)
	}
}

// dropEntry sends a member other entries in place of those that it has acknowledged to a
// leader without a majority.
func dropEntry(sim *simulation) {
	sim.grow(5)
	time.Sleep(time.Second)
	leader := sim.nodeOf(sim.leader())
	member := sim.nodes[leader.id%5]
	for _, m := range sim.nodes {
		if m != leader && m != member {
			sim.part(m)
		}
	}
	commit, term := member.applied(), leader.member.Lead().Term
	propose := func(entries ...[]byte) {
		leader.member.mail.post(func() {
			c := leader.member.raft.core
			c.Propose(c.Lead().Epoch, entries...)
		})
		time.Sleep(10 * time.Millisecond)
	}
	propose([]byte("dropped"), []byte("dropped, too"))
	next, earlier := commit+1, term-1
	member.member.Step(&raftpb.Message{
		Type: raftpb.MsgApp.Enum(), From: &leader.id, To: &member.id, Term: &term, Index: &commit, LogTerm: &term, Commit: &commit,
		Entries: []*raftpb.Entry{{Index: &next, Term: &earlier}},
	})
	propose([]byte("rejected"))
	sim.awaitOther(leader.member)
}

// rollBack restores the disk of a member from a copy older than its acknowledgments,
// while the leader is down and the third member has no record of them.
func rollBack(sim *simulation) {
	sim.grow(3)
	time.Sleep(time.Second)
	leader := sim.nodeOf(sim.leader())
	old, third := sim.nodes[leader.id%3], sim.nodes[(leader.id+1)%3]
	disk := old.disk.Crash(nil)
	for range 2 {
		old.kill(false)
		old.boot()
		sim.must(third.member.AcceptHandshake(old.id, old.member.Handshake())) // all members connect to each other
		time.Sleep(2 * time.Second)
	}
	sim.part(third)
	sim.mustPut(leader.member, 1, "acknowledged by two")
	leader.kill(true)
	old.kill(true)
	old.disk = disk
	sim.heal()
	old.boot()
	time.Sleep(5 * time.Second)
	leader.boot()
	time.Sleep(3 * time.Second)
	old.kill(true)
	sim.audit()
	sim.close()
}

// standStill pauses the leader's raft loop until another member is the leader and has
// deleted a job, and a worker requests that job from the old leader.
func standStill(sim *simulation) {
	sim.grow(3)
	time.Sleep(time.Second)
	old := sim.leader()
	id, err := sim.put(old, "tube0", engine.Spec{TTR: 60}, "deleted elsewhere")
	sim.must(err)
	k := &worker{sim: sim}
	if !k.begin() || k.member != old {
		sim.fatalf("the worker is not at the leader")
	}
	standing := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(standing) })
	defer goOn()
	old.mail.post(func() {
		if sim.fault == endlessLease { // planted only now: a sync that finds the lease expired would wait for the loop, and the worker with it
			old.mu.Lock()
			old.shared.leased = math.MaxInt64
			old.mu.Unlock()
		}
		<-standing
	})
	sim.awaitOther(old)
	sim.must(sim.delete(sim.leader())) // the member with the highest term
	done := make(chan struct{})
	var got engine.Job
	go func() {
		defer close(done)
		err = k.do(func(e *engine.Engine, now int64) { got, _ = e.Reserve(now, k.session, 0) })
	}()
	time.Sleep(time.Second)
	goOn()
	<-done
	if err == nil && got.ID == id {
		sim.fatalf("job %d was handed out after it was deleted", id)
	}
	if !errors.Is(err, broker.ErrDeposed) {
		sim.fatalf("the worker on the old leader gets %v", err)
	}
	sim.audit()
	sim.close()
}

// snapshotOfLeader makes a member receive a snapshot from a leader whose engine contains
// changes that are never committed.
func snapshotOfLeader(sim *simulation) {
	sim.small()
	sim.grow(3)
	time.Sleep(time.Second)
	leader := sim.nodeOf(sim.leader())
	other, joiner := sim.nodes[leader.id%3], sim.nodes[(leader.id+1)%3]
	joiner.kill(false)
	sim.mustPut(leader.member, 300, strings.Repeat("x", 500)) // so that it needs a snapshot
	time.Sleep(time.Second)
	sim.part(other)
	alone := sync.OnceFunc(func() {
		sim.heal()
		sim.part(leader)
	})
	sim.sent = alone
	go sim.put(leader.member, "mail", engine.Spec{TTR: 60}, "never acknowledged")
	joiner.boot()
	time.Sleep(2 * time.Second)
	alone()
	time.Sleep(5 * time.Second)
	sim.heal()
	time.Sleep(5 * time.Second)
	sim.audit()
	sim.close()
}
