package cluster

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/cluster/status"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/vfs/memfs"
)

// A single server's journal becomes a cluster's. Members that join it get what was in it before, also if they, or
// the others, are killed meanwhile.
func TestFromSingleServer(t *testing.T) {
	for _, kill := range []string{"", "joiner", "leader"} {
		t.Run(kill, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { fromSingleServer(t, kill) })
		})
	}
}

func fromSingleServer(t *testing.T, kill string) {
	w := emptyWorld(t, 3)
	m := w.machine()
	w.single(m, 3000)
	w.must(Init(m.disk, dir, m.self()))
	m.boot()
	stop := w.load(2)
	joiner := w.machine()
	l := w.leader()
	w.must(l.Add(t.Context(), joiner.self()))
	w.must(Join(joiner.disk, dir, l.Membership()))
	joiner.boot()
	if kill != "" {
		w.until("it receives the queue", joiner.fetches)
		victim := joiner
		if kill == "leader" {
			victim = m
		}
		victim.kill(true)
		time.Sleep(time.Second)
		victim.boot()
	}
	w.until("the member is a voter", func() bool { return w.roleOf(joiner.id) == status.Voter })
	w.grow(3)
	time.Sleep(time.Second)
	stop()
	w.audit()
	if n := w.jobs(); n < 3000 {
		w.fatalf("there are %d jobs", n)
	}
	w.close()
}

// fetches reports whether a part of a snapshot is on the disk.
func (m *machine) fetches() bool {
	names, err := staged{m.disk}.List(dir)
	m.w.must(err)
	return len(names) > 0
}

// A member that gets nothing from the leader asks again, and can be stopped before.
func TestSilentLeader(t *testing.T) {
	for _, stop := range []bool{false, true} {
		t.Run(fmt.Sprintf("stop=%v", stop), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { silentLeader(t, stop) })
		})
	}
}

func silentLeader(t *testing.T, stop bool) {
	w := emptyWorld(t, 1)
	w.small()
	w.grow(2)
	end := w.load(2)
	w.until("the leader's log is cut", func() bool { return w.leader().log.State().Cut.Index > 0 })
	w.silent.Store(true)
	joiner := w.machine()
	w.must(w.leader().Add(t.Context(), joiner.self()))
	w.must(Join(joiner.disk, dir, w.leader().Membership()))
	joiner.boot()
	w.until("it has asked for the queue", func() bool { return !w.silent.Load() })
	if stop {
		stopped := time.Now()
		joiner.kill(false)
		if d := time.Since(stopped); d > time.Second {
			t.Errorf("it took %v to stop", d)
		}
		joiner.boot()
	}
	w.until("the member has the whole queue", func() bool { return w.roleOf(joiner.id) == status.Voter })
	end()
	w.audit()
	w.close()
}

// single lets a single server put some jobs on a machine's disk.
func (w *world) single(m *machine, jobs int) {
	w.t.Helper()
	j := journal.New(journal.Options{Epoch: time.Now().UnixNano()})
	eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
	_, err := j.Open(m.disk, dir, eng)
	w.must(err)
	b := broker.New(eng, broker.Options{Log: j})
	for i := range jobs {
		w.must(b.Call(func(e *engine.Engine, now int64) {
			w.putOld(e, now, "mail", engine.Spec{TTR: 60, Pri: 9}, i)
		}))
	}
	w.must(b.Close())
}

// A member that lacks nothing says so to a leader which takes it for one that lacks entries that are cut.
func TestLacksNothing(t *testing.T) {
	for _, index := range []uint64{0, 1} {
		t.Run(fmt.Sprint(index), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { lacksNothing(t, index) })
		})
	}
}

// lacksNothing lets a leader, whose log is cut, hear from a member only that it has the entries up to one.
func lacksNothing(t *testing.T, index uint64) {
	w := emptyWorld(t, 1)
	w.small()
	w.grow(3)
	stop := w.load(3)
	w.until("the logs are cut", func() bool {
		return !slices.ContainsFunc(w.machines, func(m *machine) bool { return m.member.log.State().Cut.Index < 100 })
	})
	before := w.machineOf(w.leader())
	next, other := w.machines[before.id%3], w.machines[(before.id+1)%3]
	w.mu.Lock()
	w.cut[[2]uint64{other.id, next.id}] = true
	w.mu.Unlock()
	w.must(w.leader().Transfer(t.Context(), next.id))
	w.until("it leads", func() bool { return next.member.Lead().Epoch != 0 })
	term := next.member.Lead().Term
	next.member.Step(&raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: &other.id, To: &next.id, Term: &term, Index: &index})
	time.Sleep(time.Second)
	w.heal()
	stop()
	w.until("it is up to date", func() bool { return other.applied() == next.applied() })
	if n := w.logged("it receives the whole queue"); n > 0 {
		t.Errorf("it has received the whole queue %d times", n)
	}
	w.audit()
	w.close()
}

// A member joins although more is written in the time that its snapshot takes than is kept for members that are away: the log is
// kept for those that catch up.
func TestSnapshotUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := emptyWorld(t, 1)
		w.small()
		w.opt.Journal.Sync = 20 * time.Millisecond // so often the log is cut
		w.grow(2)
		w.preload(20_000)
		stop := w.write()
		w.join(w.machine())
		stop()
		if n := w.logged("it receives the whole queue"); n != 1 {
			t.Errorf("it has received the whole queue %d times", n)
		}
		w.audit()
		w.close()
	})
}

// write lets the log grow, and the queue not, until it is told to stop.
func (w *world) write() (stop func()) {
	l, done, stopped := w.leader(), make(chan struct{}), make(chan struct{})
	body := make([]byte, 1700)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			case <-time.After(3 * time.Millisecond):
			}
			w.must(l.Broker().Call(func(e *engine.Engine, now int64) {
				id, _ := e.PutInto(now, []byte("mail"), engine.Spec{TTR: 60}, body)
				e.DeleteJob(id)
			}))
		}
	}()
	return func() { close(done); <-stopped }
}

func (w *world) jobs() (n int64) {
	w.leader().Broker().Look(func(e *engine.Engine, _ int64) {
		st := e.Stats()
		n = int64(st.Ready + st.Delayed)
	})
	return n
}

// A hidden is a disk that does not tell of the seal of a snapshot.
type hidden struct{ vfs.FS }

func (h hidden) Open(name string) (vfs.File, error) {
	if name == sealFile(dir) {
		return nil, syscall.EIO
	}
	return h.FS.Open(name)
}

// A member does not start that cannot see whether a snapshot is to be installed.
func TestUnknownSeal(t *testing.T) {
	disk := memfs.New()
	self := raftlog.Member{ID: 1, Address: "10.0.0.1:11400"}
	must(t, Init(disk, dir, self))
	m, err := Open(Options{FS: hidden{disk}, Dir: dir, Self: self, Journal: journal.Options{Member: true, Sync: time.Second}})
	if !errors.Is(err, syscall.EIO) {
		if err == nil {
			m.Close()
		}
		t.Fatalf("the member starts: %v", err)
	}
}

// A copy of a member's journal, which has the mark of an entry of a late term, becomes
// another cluster's when it is released, and not before.
func TestFromBackup(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		m := w.machines[0]
		for range 5 { // each start is a term
			_, err := w.put(w.leader(), "mail", engine.Spec{TTR: 60}, "old")
			w.must(err)
			m.kill(false)
			m.boot()
		}
		w.leader() // it has applied all
		w.must(m.member.Close())
		names, err := m.disk.List(LogDir(dir))
		w.must(err)
		for _, name := range names {
			w.must(m.disk.Remove(filepath.Join(LogDir(dir), name)))
		}
		if err := Init(m.disk, dir, m.self()); !errors.Is(err, journal.ErrOfMember) {
			t.Errorf("the journal of a member becomes another cluster's: %v", err)
		}
		w.must(Release(m.disk, dir))
		w.must(Init(m.disk, dir, m.self()))
		m.boot()
		w.leader()
		stop := w.load(2)
		w.grow(3)
		for _, o := range w.machines {
			o.kill(true)
			time.Sleep(2 * time.Second)
			o.boot()
			w.until("all are heard", func() bool {
				s, err := w.leader().Status()
				w.must(err)
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

// leaveBehind cuts a machine off until the others, which clients use until stop is called, do not have any more what it needs.
func (w *world) leaveBehind(lags *machine) (stop func()) {
	w.part(lags)
	stop = w.load(3)
	last := lags.member.log.Last().Index
	w.until("what it needs is cut", func() bool {
		return !slices.ContainsFunc(w.machines, func(m *machine) bool { return m != lags && m.member.log.State().Cut.Index <= last })
	})
	return stop
}

// A leader has done what is not committed when the only other member that is left needs a snapshot: that has nothing of it,
// and waits for nobody.
func TestSnapshotWithoutMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := emptyWorld(t, 1)
		w.small()
		w.grow(3)
		l := w.machineOf(w.leader())
		lags, third := w.machines[l.id%3], w.machines[(l.id+1)%3]
		stop := w.leaveBehind(lags)
		third.kill(false)
		w.heal()
		before := w.acknowledged()
		w.until("puts go on", func() bool { return w.acknowledged() > before+100 })
		stop()
		third.boot()
		w.audit()
		w.close()
	})
}

// When the leader is lost for good while a member receives the queue, that member's vote makes another one lead.
func TestVoteWhileReceiving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := emptyWorld(t, 1)
		w.small()
		w.grow(3)
		l := w.machineOf(w.leader())
		lags, third := w.machines[l.id%3], w.machines[(l.id+1)%3]
		stop := w.leaveBehind(lags)
		stop()
		goOn := lags.trouble.hang(isOfJournal)
		time.AfterFunc(time.Minute, goOn) // else the test would not end if it fails
		w.heal()
		w.until("it receives the queue", lags.fetches)
		l.kill(true)
		l.gone = true
		w.until("another one leads", func() bool { return third.member.Lead().Leader == third.id })
		if !lags.fetches() || lags.member.Installing() {
			t.Error("the member has the whole queue already: this shows nothing")
		}
		goOn()
		w.until("it is active", func() bool { return third.member.Lead().Epoch != 0 })
		self := w.machine().self()
		self.Replaces = l.id
		w.joinAs(w.machines[3], self)
		w.audit()
		w.close()
	})
}

// A member that has no room for a snapshot votes as before: when the leader is lost then, another one leads, and sends the
// queue itself: it has not heard yet that any other member has something. In a young cluster that one would not be far behind.
func TestVoteAfterFailedFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := emptyWorld(t, 1)
		w.small()
		w.grow(3)
		l := w.machineOf(w.leader())
		lags, third := w.machines[l.id%3], w.machines[(l.id+1)%3]
		w.leaveBehind(lags)()
		lags.trouble.fill(func(name string) bool { return strings.HasSuffix(name, stagedSuffix) })
		w.heal()
		w.until("it has failed to receive the queue", func() bool { return w.logged("the queue could not be received from the leader") > 0 })
		l.kill(true)
		w.until("another one leads", func() bool { return third.member.Lead().Leader == third.id })
		lags.trouble.fill(nil)
		w.until("it is active", func() bool { return third.member.Lead().Epoch != 0 })
		l.boot()
		w.audit()
		w.close()
	})
}

// A member whose journal was full just before it received the queue does not wait busily until it would try again. What Raft
// had given out to be applied before is not applied to the new queue.
func TestSnapshotAfterFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, lags, stop := leftBehindFull(t)
		lags.member.inLoop(func() {
			if c := lags.member.raft.core; c.Status().GetCommit() == c.Applied().Index {
				t.Error("nothing is to be applied: this shows nothing")
			}
		})
		lags.trouble.fill(nil)
		w.heal()
		w.until("it has received the queue", func() bool { return w.logged("the whole queue was received") > 0 })
		stop()
		w.audit()
		w.close()
	})
}

// leftBehindFull returns a world with a machine that is cut off, and lacks what the others do not have any more. Its journal
// is full, so it has not applied what it has, and has just tried to. Clients use the others until stop is called.
func leftBehindFull(t *testing.T) (w *world, lags *machine, stop func()) {
	w = emptyWorld(t, 1)
	w.small()
	w.grow(3)
	lags = w.machines[w.machineOf(w.leader()).id%3]
	lags.trouble.fill(isOfJournal)
	stop = w.load(3)
	refusals := func() int { return w.logged("the journal cannot take what the cluster has agreed on") }
	w.until("its journal takes nothing", func() bool { return refusals() > 0 })
	lags.trouble.fill(func(string) bool { return true })
	w.leaveBehind(lags)()
	before := refusals()
	w.until("it has just tried again", func() bool { return refusals() > before })
	return w, lags, stop
}

// When the leader dies while a member lacks entries that are cut, and no other is left, the next leader sends the queue before it is in
// epoch: without that member nobody has a majority.
func TestWalkBeforeActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := emptyWorld(t, 1)
		w.small()
		w.grow(3)
		l := w.machineOf(w.leader())
		stop := w.leaveBehind(w.machines[l.id%3])
		stop()
		l.kill(false)
		w.heal()
		w.leader()
		if n := w.logged("it receives the whole queue"); n != 1 {
			t.Errorf("it has received the whole queue %d times", n)
		}
		l.boot()
		w.audit()
		w.close()
	})
}

// A snapshot of which the member never hears is offered again.
func TestOfferIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := emptyWorld(t, 1)
		w.small()
		w.grow(3)
		lags := w.machines[w.machineOf(w.leader()).id%3]
		w.leaveBehind(lags)()
		lost := 0
		w.lose = func(msg *raftpb.Message) bool {
			if msg.GetType() != raftpb.MsgSnap {
				return false
			}
			lost++
			return lost == 1
		}
		w.heal()
		w.until("it has received the queue", func() bool { return w.logged("the whole queue was received") > 0 })
		w.audit()
		w.close()
	})
}

// A snapshot whose roles are those of a later entry is not installed: Raft would make the changes between them twice.
func TestLaterRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := emptyWorld(t, 1)
		w.small()
		w.grow(3)
		lags := w.machines[w.machineOf(w.leader()).id%3]
		w.leaveBehind(lags)()
		w.laterRoles.Store(true)
		w.heal()
		w.until("it has refused a snapshot", func() bool { return w.logged("before the change of the members") > 0 })
		if w.logged("the whole queue was received") > 0 {
			t.Error("the snapshot is installed")
		}
		w.laterRoles.Store(false)
		w.until("it has received the queue", func() bool { return w.logged("the whole queue was received") > 0 })
		w.audit()
		w.close()
	})
}
