package cluster

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A cluster can start with a single server's journal. Members that join receive its jobs,
// even if members are killed during that time.
func TestFromSingleServer(t *testing.T) {
	for _, kill := range []string{"", "joiner", "leader"} {
		t.Run(kill, func(t *testing.T) {
			inSimulation(t, 0, func(t *testing.T, sim *simulation) {
				m := sim.node()
				sim.single(m, 3000)
				sim.must(Init(m.disk, dir, m.self()))
				m.boot()
				stop := sim.load(2)
				joiner := sim.node()
				sim.admit(joiner, joiner.self())
				joiner.boot()
				if kill != "" {
					sim.until("it receives the queue", joiner.fetches)
					victim := joiner
					if kill == "leader" {
						victim = m
					}
					victim.kill(true)
					time.Sleep(time.Second)
					victim.boot()
				}
				sim.until("the member is a voter", func() bool { return sim.roles()[joiner.id] == apitype.Voter })
				sim.grow(3)
				time.Sleep(time.Second)
				stop()
				if n := sim.jobs(); n < 3000 {
					sim.fatalf("there are %d jobs", n)
				}
			})
		})
	}
}

// fetches reports whether part of a snapshot is on the disk.
func (m *node) fetches() bool {
	names, err := staged{m.disk}.List(dir)
	m.sim.must(err)
	return len(names) > 0
}

// A member that receives nothing from the leader repeats its request, and can be stopped
// before that.
func TestSilentLeader(t *testing.T) {
	for _, stop := range []bool{false, true} {
		t.Run(fmt.Sprintf("stop=%v", stop), func(t *testing.T) {
			inSimulationOf(t, 2, (*simulation).small, func(t *testing.T, sim *simulation) {
				end := sim.load(2)
				sim.until("the leader's log is cut", func() bool { return sim.leader().log.State().Cut.Index > 0 })
				sim.silent.Store(true)
				joiner := sim.node()
				sim.admit(joiner, joiner.self())
				joiner.boot()
				sim.until("it has asked for the queue", func() bool { return !sim.silent.Load() })
				if stop {
					stopped := time.Now()
					joiner.kill(false)
					if d := time.Since(stopped); d > time.Second {
						t.Errorf("it took %v to stop", d)
					}
					joiner.boot()
				}
				sim.until("the member has the whole queue", func() bool { return sim.roles()[joiner.id] == apitype.Voter })
				end()
			})
		})
	}
}

// single makes a single server put some jobs on a node's disk.
func (sim *simulation) single(m *node, jobs int) {
	sim.t.Helper()
	j := journal.New(journal.Options{Epoch: time.Now().UnixNano()})
	eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
	_, err := j.Open(m.disk, dir, eng)
	sim.must(err)
	b := broker.New(eng, broker.Options{Log: j})
	for i := range jobs {
		sim.must(b.Call(func(e *engine.Engine, now int64) {
			sim.putOld(e, now, "mail", engine.Spec{TTR: 60, Pri: 9}, i)
		}))
	}
	sim.must(b.Close())
}

// If a leader whose log is cut has only an old acknowledgment of a member, it offers a
// snapshot. The member lacks nothing, and informs the leader.
func TestLacksNoEntry(t *testing.T) {
	for _, index := range []uint64{0, 1} {
		t.Run(fmt.Sprint(index), func(t *testing.T) {
			inSmallSimulation(t, func(t *testing.T, sim *simulation) {
				stop := sim.load(3)
				sim.until("the logs are cut", func() bool {
					return !slices.ContainsFunc(sim.nodes, func(m *node) bool { return m.member.log.State().Cut.Index < 100 })
				})
				before := sim.nodeOf(sim.leader())
				next, other := sim.nodes[before.id%3], sim.nodes[(before.id+1)%3]
				sim.mu.Lock()
				sim.cut[[2]uint64{other.id, next.id}] = true
				sim.mu.Unlock()
				sim.must(sim.leader().Transfer(t.Context(), next.id))
				sim.until("it leads", func() bool { return next.member.Lead().Epoch != 0 })
				term := next.member.Lead().Term
				next.member.Step(&raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: &other.id, To: &next.id, Term: &term, Index: &index})
				time.Sleep(time.Second)
				sim.heal()
				stop()
				sim.until("it is up to date", func() bool { return other.applied() == next.applied() })
				if n := sim.logged("receiving the whole queue"); n > 0 {
					t.Errorf("it has received the whole queue %d times", n)
				}
			})
		})
	}
}

// A member can join even if clients write much during the transfer of its snapshot. The
// log keeps more entries for members that are catching up than for absent members.
func TestSnapshotUnderLoad(t *testing.T) {
	set := func(sim *simulation) {
		sim.small()
		sim.opt.Journal.Sync = 20 * time.Millisecond // determines the frequency of cuts
	}
	inSimulationOf(t, 2, set, func(t *testing.T, sim *simulation) {
		sim.preload(20_000)
		stop := sim.write()
		sim.join(sim.node())
		stop()
		if n := sim.logged("receiving the whole queue"); n != 1 {
			t.Errorf("it has received the whole queue %d times", n)
		}
	})
}

// write makes the log grow, but not the queue, until stop is called.
func (sim *simulation) write() (stop func()) {
	l, done, stopped := sim.leader(), make(chan struct{}), make(chan struct{})
	body := make([]byte, 1700)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			case <-time.After(3 * time.Millisecond):
			}
			sim.must(l.Broker().Call(func(e *engine.Engine, now int64) {
				id, _ := e.PutInto(now, []byte("mail"), engine.Spec{TTR: 60}, body)
				e.DeleteJob(id)
			}))
		}
	}()
	return func() { close(done); <-stopped }
}

func (sim *simulation) jobs() (n int64) {
	sim.leader().Broker().View(func(e *engine.Engine, _ int64) {
		st := e.Stats()
		n = int64(st.Ready + st.Delayed)
	})
	return n
}

// A hidden disk hides the marker of a snapshot.
type hidden struct{ vfs.FS }

func (h hidden) Open(name string) (vfs.File, error) {
	if name == markerFile(dir) {
		return nil, syscall.EIO
	}
	return h.FS.Open(name)
}

// A member does not start if it cannot determine whether a snapshot must be installed.
func TestUnknownSeal(t *testing.T) {
	disk := emptyDisk()
	self := raftlog.MemberInfo{ID: 1, Address: "10.0.0.1:11400"}
	must(t, Init(disk, dir, self))
	m, err := Open(Options{FS: hidden{disk}, Dir: dir, Self: self, Journal: journal.Options{Member: true, Sync: time.Second}})
	if !errors.Is(err, syscall.EIO) {
		if err == nil {
			m.Close()
		}
		t.Fatalf("the member starts: %v", err)
	}
}

// A copy of a member's journal, with the Applied record of an entry in a late term, can
// become another cluster's journal only after it is released.
func TestFromBackup(t *testing.T) {
	inSimulation(t, 1, func(t *testing.T, sim *simulation) {
		m := sim.nodes[0]
		for range 5 { // each start is a term
			sim.mustPut(sim.leader(), 1, "old")
			m.kill(false)
			m.boot()
		}
		sim.leader() // the leader has applied all entries
		sim.must(m.member.Close())
		names, err := m.disk.List(LogDir(dir))
		sim.must(err)
		for _, name := range names {
			sim.must(m.disk.Remove(filepath.Join(LogDir(dir), name)))
		}
		if err := Init(m.disk, dir, m.self()); !errors.Is(err, journal.ErrOfMember) {
			t.Errorf("the journal of a member becomes another cluster's: %v", err)
		}
		sim.must(Release(m.disk, dir))
		sim.must(Init(m.disk, dir, m.self()))
		m.boot()
		sim.leader()
		stop := sim.load(2)
		sim.grow(3)
		for _, o := range sim.nodes {
			o.kill(true)
			time.Sleep(2 * time.Second)
			o.boot()
			sim.until("all are heard", func() bool {
				s, err := sim.leader().Status()
				sim.must(err)
				for _, k := range s.Members {
					if !k.Reachable || k.Progress == nil || k.Lag > 10 {
						return false
					}
				}
				return true
			})
		}
		stop()
	})
}

// leaveBehind cuts off a node until the others no longer have the entries that it needs.
// Clients use the others until stop is called.
func (sim *simulation) leaveBehind(lags *node) (stop func()) {
	sim.part(lags)
	stop = sim.load(3)
	last := lags.member.log.Last().Index
	sim.until("what it needs is cut", func() bool {
		return !slices.ContainsFunc(sim.nodes, func(m *node) bool { return m != lags && m.member.log.State().Cut.Index <= last })
	})
	return stop
}

// A server that is not, or is no longer, a member gets no snapshot, and no entry in the
// table of peers.
func TestSnapshotForStranger(t *testing.T) {
	inSimulation(t, 1, func(t *testing.T, sim *simulation) {
		l := sim.leader()
		if err := l.SendSnapshot(99, io.Discard); !errors.Is(err, ErrNotMember) {
			t.Errorf("a stranger asks for a snapshot: %v", err)
		}
		l.inLoop(func() {
			if l.raft.peers[99] != nil {
				t.Error("the stranger is in the table of peers")
			}
		})
	})
}

// A leader has executed commands that are not committed when the only other remaining
// member needs a snapshot. The snapshot contains none of their changes, and the member
// waits for no other member.
func TestSnapshotWithoutMajority(t *testing.T) {
	inSmallSimulation(t, func(t *testing.T, sim *simulation) {
		l := sim.nodeOf(sim.leader())
		lags, third := sim.nodes[l.id%3], sim.nodes[(l.id+1)%3]
		stop := sim.leaveBehind(lags)
		third.kill(false)
		sim.heal()
		before := sim.acknowledged()
		sim.until("puts go on", func() bool { return sim.acknowledged() > before+100 })
		stop()
		third.boot()
	})
}

// A member without space for a snapshot still votes. When the leader is lost, another
// member becomes the leader and sends the queue itself, although it has not heard yet
// which entries the others have. In a young cluster, that member would not be far behind.
func TestVoteAfterFailedFetch(t *testing.T) {
	inSmallSimulation(t, func(t *testing.T, sim *simulation) {
		l := sim.nodeOf(sim.leader())
		lags, third := sim.nodes[l.id%3], sim.nodes[(l.id+1)%3]
		sim.leaveBehind(lags)()
		lags.trouble.fill(func(name string) bool { return strings.HasSuffix(name, stagedSuffix) })
		sim.heal()
		sim.until("it has failed to receive the queue", func() bool { return sim.logged("could not receive the queue from the leader") > 0 })
		sim.until("its health has the reason", func() bool {
			return strings.HasPrefix(lags.member.Health().Trouble, "this member cannot receive the queue: ")
		})
		if err := lags.member.Ready(); err == nil || !strings.Contains(err.Error(), "cannot receive the queue") {
			t.Errorf("it is ready: %v", err)
		}
		sim.until("the leader shows that it is catching up", func() bool { s := sim.statusOf(l); return s.of(lags.id).CatchingUp })
		if s := sim.statusOf(l); s.of(third.id).CatchingUp {
			t.Errorf("the other member is catching up: %+v", s.of(third.id))
		}
		l.kill(true)
		sim.until("another one leads", func() bool { return third.member.Lead().Leader == third.id })
		lags.trouble.fill(nil)
		sim.until("it is active", func() bool { return third.member.Lead().Epoch != 0 })
		sim.until("it is ready", func() bool { return lags.member.Ready() == nil && lags.member.Health().Trouble == "" })
		l.boot()
	})
}

// If a member's journal was full just before it received the queue, the member does not
// wait in a busy loop until its next attempt. Entries that Raft had returned for
// application before are not applied to the new queue.
func TestSnapshotAfterFullDisk(t *testing.T) {
	inSmallSimulation(t, func(t *testing.T, sim *simulation) {
		lags := sim.nodes[sim.nodeOf(sim.leader()).id%3]
		lags.trouble.fill(isOfJournal)
		stop := sim.load(3)
		refusals := func() int { return sim.logged("cannot apply a committed entry") }
		sim.until("its journal takes nothing", func() bool { return refusals() > 0 })
		lags.trouble.fill(func(string) bool { return true })
		sim.leaveBehind(lags)()
		before := refusals()
		sim.until("it has just tried again", func() bool { return refusals() > before })
		lags.member.inLoop(func() {
			if c := lags.member.raft.core; c.Status().GetCommit() == c.Applied().Index {
				t.Error("nothing is to be applied: this shows nothing")
			}
		})
		lags.trouble.fill(nil)
		sim.heal()
		sim.until("it has received the queue", func() bool { return sim.logged("the whole queue was received") > 0 })
		stop()
	})
}

// The leader dies while a member lacks entries that were cut, and only one other member
// is left. That member becomes the leader, and sends the queue before its epoch starts,
// because there is no majority without the other member.
func TestWalkBeforeActive(t *testing.T) {
	inSmallSimulation(t, func(t *testing.T, sim *simulation) {
		l := sim.nodeOf(sim.leader())
		stop := sim.leaveBehind(sim.nodes[l.id%3])
		stop()
		l.kill(false)
		sim.heal()
		sim.leader()
		if n := sim.logged("receiving the whole queue"); n != 1 {
			t.Errorf("it has received the whole queue %d times", n)
		}
		l.boot()
	})
}

// A snapshot whose offer was lost is offered again.
func TestOfferIsLost(t *testing.T) {
	inSmallSimulation(t, func(t *testing.T, sim *simulation) {
		lags := sim.nodes[sim.nodeOf(sim.leader()).id%3]
		sim.leaveBehind(lags)()
		lost := 0
		sim.lose = func(msg *raftpb.Message) bool {
			if msg.GetType() != raftpb.MsgSnap {
				return false
			}
			lost++
			return lost == 1
		}
		sim.heal()
		sim.until("it has received the queue", func() bool { return sim.logged("the whole queue was received") > 0 })
	})
}

// A snapshot with the roles of a later entry is not installed, because Raft would apply
// the role changes in between twice.
func TestLaterRoles(t *testing.T) {
	inSmallSimulation(t, func(t *testing.T, sim *simulation) {
		lags := sim.nodes[sim.nodeOf(sim.leader()).id%3]
		sim.leaveBehind(lags)()
		sim.laterRoles.Store(true)
		sim.heal()
		sim.until("it has refused a snapshot", func() bool { return sim.logged("before the change of the members") > 0 })
		if sim.logged("the whole queue was received") > 0 {
			t.Error("the snapshot is installed")
		}
		sim.laterRoles.Store(false)
		sim.until("it has received the queue", func() bool { return sim.logged("the whole queue was received") > 0 })
	})
}
