package cluster

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/core"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// diskOn returns the append goroutine's part of a member, with a log on the given file
// system, until ctx ends.
func diskOn(ctx context.Context, t *testing.T, fs vfs.FS) (*disk, *raftlog.Log) {
	log, err := raftlog.Open(fs, "/", raftlog.Options{SegmentSize: 2 << 10})
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{Logger: slog.New(slog.DiscardHandler), Now: func() int64 { return 1 }}
	return newDisk(&Member{opt: opt, log: log, lifecycle: lifecycle{ctx: ctx}}), log
}

func writes(all ...core.Write) diskWork { return diskWork{writes: all} }

// entryOf returns the write of an entry without data.
func entryOf(index, term uint64) core.Write {
	return core.Write{
		Hard:    &raftpb.HardState{Term: &term, Vote: new(uint64), Commit: new(uint64)},
		Entries: []*raftpb.Entry{{Index: &index, Term: &term}},
	}
}

// Entries that override others are written even if any call of the disk fails.
func TestFailWhileOverriding(t *testing.T) {
	for n := 1; ; n++ {
		fs := faultfs.New(memfs.New(), faultfs.Fault{Op: faultfs.Write, N: n})
		d, log := diskOn(t.Context(), t, fs)
		d.write([]diskWork{writes(entryOf(1, 1), entryOf(2, 1)), writes(entryOf(3, 1), entryOf(1, 2))})
		if last := log.Last(); last != (raftlog.Position{Index: 1, Term: 2}) {
			t.Errorf("when call %d fails the log ends with %v", n, last)
		}
		failed := fs.Fired() > 0
		fs.Set()
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		if !failed {
			break
		}
	}
}

// If a member stops while its disk fails, it writes no data after the data that it could
// not write.
func TestEndWhileFailing(t *testing.T) {
	for range 20 { // the end and the pending work compete
		synctest.Test(t, func(t *testing.T) {
			fs := faultfs.New(memfs.New())
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			d, log := diskOn(ctx, t, fs)
			go func() { d.run(); close(ended) }()
			fs.Set(faultfs.Fault{Op: faultfs.Write, N: 1, Sticky: true})
			d.add(writes(entryOf(1, 1)))
			time.Sleep(time.Second)
			d.add(writes(entryOf(2, 1)))
			stop()
			<-ended
			if last := log.Last(); last.Index != 0 {
				t.Errorf("the log ends with %v", last)
			}
			log.Close()
		})
	}
}

// After a fatal reason has stopped a member, the disk writes nothing more of the same
// batch, and delivers no responses for it.
func TestNoMessageAfterVerdict(t *testing.T) {
	for _, stop := range []func(d *disk){(*disk).leave, func(d *disk) { d.stopWith("a test") }} {
		ctx, end := context.WithCancel(t.Context())
		d, log := diskOn(ctx, t, memfs.New())
		d.m.end, d.m.logger, d.m.mail = end, d.m.opt.Logger, &mailbox{wake: make(chan struct{}, 1)}
		after := entryOf(1, 1)
		after.Responses = []*raftpb.Message{{}}
		stop(d)
		d.add(writes(after))
		if d.write(d.waits) {
			t.Error("the disk continues")
		}
		if calls := d.m.mail.take(); len(calls) > 0 || log.Last().Index > 0 || ctx.Err() == nil {
			t.Errorf("the log ends with %v, the member has ended: %v, the loop gets %d calls", log.Last(), ctx.Err(), len(calls))
		}
		log.Close()
	}
}

// While too many changes are not committed, clients wait before their turns. Turns do not
// wait: the queue can be read, and a put that does not wait is committed.
func TestManyChangesPending(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		time.Sleep(time.Second)
		l := sim.leader()
		pending := func(weight int64) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.proposals.weight += weight
			l.changed.Broadcast()
		}
		l.Broker().AwaitRoom()
		pending(maxPending + 1)
		room := make(chan struct{})
		go func() {
			l.Broker().AwaitRoom()
			close(room)
		}()
		sim.mustPut(l, 2, "without waiting for room")
		select {
		case <-room:
			t.Error("clients do not wait for space")
		default:
		}
		pending(-maxPending)
		<-room
		pending(-1)
	})
}

// If a job is so large that all disks need seconds to write it, it is put, and the leader
// keeps the leadership.
func TestLargeJobOnSlowDisks(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		time.Sleep(time.Second)
		l := sim.leader()
		for _, m := range sim.nodes {
			m.trouble.slow(10 << 20)
		}
		for range 2 { // the second time, the journal waits for the end of the first sync
			if _, err := sim.put(l, "mail", engine.Spec{TTR: 60}, strings.Repeat("x", 12<<20)); err != nil || sim.leader() != l {
				t.Errorf("%v; another one leads: %v", err, sim.leader() != l)
			}
		}
		time.Sleep(3 * time.Second)
		if sim.leader() != l {
			t.Error("another one leads")
		}
	})
}

// If the leader's disk hangs, the leader commits with the others' disks, transfers the
// leadership, and returns when its disk works again. If a follower's disk hangs, it
// delays no other member. The test hangs the syncs, the writes of the journal, for which
// turns wait, or the writes of Raft's log.
func TestDiskHangs(t *testing.T) {
	for name, waits := range map[string]func(name string) bool{"syncs": nil, "writes of the journal": isOfJournal, "writes of the log": isOfLog} {
		t.Run(name, func(t *testing.T) {
			inSimulation(t, 3, func(t *testing.T, sim *simulation) {
				time.Sleep(time.Second)
				l := sim.leader()
				end := sim.nodeOf(l).trouble.hang(waits)
				began := time.Now()
				for waits == nil && time.Since(began) < 500*time.Millisecond {
					sim.mustPut(l, 1, "while the leader's disk hangs")
				}
				if sim.leader() != l {
					t.Error("the leader did not even wait half a second for its disk")
				}
				for range 3 {
					go sim.put(l, "mail", engine.Spec{TTR: 60}, "while the leader's disk hangs") // can fail
				}
				sim.awaitOther(l)
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("the leader kept the leadership for %v of fake time", took)
				}
				sim.mustPut(nil, 50, "while a follower's disk hangs")
				end()
			})
		})
	}
}

// While a write to the leader's log hangs, the leader's loop continues, and sends a
// follower entries that it reads from sealed segments.
func TestFollowerLagsWhileWritesHang(t *testing.T) {
	inSmallSimulation(t, func(t *testing.T, sim *simulation) {
		time.Sleep(time.Second)
		l := sim.leader()
		lags := sim.nodes[l.opt.Self.ID%3]
		sim.part(lags)
		sim.mustPut(l, 20, strings.Repeat("x", 1000)) // more than the leader has in memory, and less than it keeps
		time.Sleep(5 * time.Second)                   // no message is in transit
		all := l.log.Last()
		end := sim.nodeOf(l).trouble.hang(isOfLog)
		go sim.put(l, "mail", engine.Spec{TTR: 60}, "while the leader's writes hang") // can fail
		time.Sleep(50 * time.Millisecond)
		sim.heal()
		sim.until("the follower has caught up", func() bool { return lags.member.log.Last().Index >= all.Index })
		if lasts, _ := l.disk.lasts(l.opt.Now()); lasts == 0 || lags.member.log.Last().Term != all.Term {
			t.Errorf("the follower has received the entries up to %v, but not from this leader while its writes hung", all)
		}
		end()
	})
}

// A leader that waits for another segment of its journal, before it executes a command,
// is also replaced.
func TestNewSegmentHangs(t *testing.T) {
	inSmallSimulation(t, func(t *testing.T, sim *simulation) {
		time.Sleep(time.Second)
		l := sim.leader()
		m := sim.nodeOf(l)
		names, err := m.disk.List(dir)
		sim.must(err)
		end := m.trouble.hang(func(name string) bool {
			return isOfJournal(name) && !slices.Contains(names, filepath.Base(name))
		})
		stop := sim.load(3)
		for range 20 {
			go sim.put(l, "mail", engine.Spec{TTR: 60}, large) // can fail
		}
		sim.awaitOther(l)
		end()
		stop()
	})
}

// If the disks of all members are full, each member transfers the leadership once, and
// then keeps it.
func TestAllDisksAreFull(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		time.Sleep(time.Second)
		for _, m := range sim.nodes {
			m.trouble.fill(isOfJournal)
		}
		epochs := map[uint64]bool{} // by term
		for began := time.Now(); time.Since(began) < 4*time.Minute; time.Sleep(20 * time.Millisecond) {
			l := sim.leader()
			epochs[l.Lead().Term] = true
			sim.put(l, "mail", engine.Spec{TTR: 60}, large) // can be refused
		}
		if n := len(epochs); n < 2 || n > 4 {
			t.Errorf("there were %d epochs, with three members", n)
		}
		for _, m := range sim.nodes {
			m.trouble.fill(nil)
		}
	})
}

// While the disks of a majority are full, puts and deletes wait. When the disks have
// space, they continue automatically.
func TestMostDisksAreFull(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		time.Sleep(time.Second)
		l := sim.leader()
		sim.mustPut(l, 10, "while there is room")
		for _, m := range sim.nodes {
			if m.member != l {
				m.trouble.fill(func(string) bool { return true })
			}
		}
		const puts = 500 // more than fits into the files
		ended := make(chan error)
		for range puts {
			go func() {
				_, err := sim.put(l, "mail", engine.Spec{TTR: 60}, large)
				ended <- err
			}()
		}
		waiting := puts
		for began := time.Now(); time.Since(began) < 30*time.Second; {
			select {
			case err := <-ended:
				sim.must(err)
				waiting--
			case <-time.After(time.Second):
			}
		}
		if waiting == 0 {
			t.Fatal("no put waits")
		}
		deleted := make(chan error)
		go func() { deleted <- sim.delete(l) }()
		select {
		case err := <-ended:
			t.Errorf("a put is answered: %v", err)
		case err := <-deleted:
			t.Errorf("a delete is answered: %v", err)
		case <-time.After(time.Minute):
		}
		if sim.leader() != l {
			t.Error("another one leads, whose disk is full")
		}
		for _, m := range sim.nodes {
			m.trouble.fill(nil)
		}
		for range waiting {
			sim.must(<-ended)
		}
		sim.must(<-deleted)
	})
}

// large is a body so large that few such jobs fill a segment.
var large = strings.Repeat("x", 4<<10)

// A leader whose disk is full transfers the leadership to a member with free space.
func TestDiskIsFull(t *testing.T) {
	for name, full := range map[string]func(name string) bool{
		"all of it":              func(string) bool { return true },
		"for the journal":        isOfJournal,
		"for the log of entries": isOfLog,
		"but for moments": func(name string) bool { // as after the journal was cleaned
			return isOfJournal(name) && time.Now().UnixMilli()%800 > 30
		},
	} {
		t.Run(name, func(t *testing.T) {
			inSimulation(t, 3, func(t *testing.T, sim *simulation) {
				time.Sleep(time.Second)
				l := sim.leader()
				of := &sim.nodeOf(l).trouble
				of.fill(full)
				sim.until("another one leads", func() bool {
					sim.put(l, "mail", engine.Spec{TTR: 60}, large) // can be refused
					m := sim.whoLeads()
					return m != nil && m != l
				})
				sim.mustPut(nil, 50, large)
				of.fill(nil)
			})
		})
	}
}

// A member is not ready if its journal has not applied committed entries for 10 s.
func TestLagging(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		time.Sleep(time.Second)
		l := sim.leader()
		full := sim.nodes[l.opt.Self.ID%3]
		sim.must(full.member.Ready())
		full.trouble.fill(isOfJournal)
		sim.mustPut(l, 200, large) // more than fits into its segments
		time.Sleep(5 * time.Second)
		sim.must(full.member.Ready())
		if h := full.member.Health(); !strings.Contains(h.Trouble, "cannot write its journal: ") || h.DiskFree == nil {
			t.Errorf("its health: %+v", h)
		}
		if h := l.Health(); h.Trouble != "" {
			t.Errorf("the health of the leader: %+v", h)
		}
		time.Sleep(6 * time.Second)
		if err := full.member.Ready(); err == nil || !strings.Contains(err.Error(), " s behind") {
			t.Errorf("ready: %v", err)
		}
		sim.must(l.Ready())
		full.trouble.fill(nil)
		sim.until("it is ready again", func() bool { return full.member.Ready() == nil })
	})
}

// A member with a full journal can win an election. It cannot serve clients, so it
// transfers the leadership.
func TestFullMemberIsElected(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	won := false
	for seed := uint64(0); seed < 8 || !won && seed < 64; seed++ {
		synctest.Test(t, func(t *testing.T) {
			sim := newSimulation(t, seed, 3)
			time.Sleep(time.Second)
			l := sim.leader()
			full := sim.nodes[l.opt.Self.ID%3]
			full.trouble.fill(isOfJournal)
			sim.mustPut(l, 200, large) // more than fits into its segments
			sim.nodeOf(l).kill(false)
			sim.until("the member that has room leads", func() bool {
				s, err := full.member.Status()
				sim.must(err)
				won = won || s.Leader == full.id
				m := sim.whoLeads()
				return m != nil && m != full.member
			})
			sim.mustPut(sim.leader(), 1, large)
			full.trouble.fill(nil)
			sim.nodeOf(l).boot()
			sim.audit()
			sim.close()
		})
	}
	if !won {
		t.Error("the full member was never elected")
	}
}
