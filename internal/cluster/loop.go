package cluster

import (
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/core"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

// raftState is owned by the raft loop.
type raftState struct {
	core       *core.Core
	members    []raftlog.Member
	told       uint64            // the leader whose time was heard last
	peers      map[uint64]*peer  // what is known of other members in this life
	everywhere uint64            // all members have the log up to here, as far as is known
	goals      map[uint64]uint64 // learner -> the entry with which it has caught up
	swaps      map[uint64]uint64 // learner -> the voter in whose place it comes

	// Of a member that needs entries which are cut.
	donor   uint64   // who is to send a walk, as the leader says
	needy   []uint64 // at the leader: those that need one
	walking bool     // one is received
	partial bool     // engine and journal do not have everything: the member takes no part but for heartbeats

	successor uint64 // the leadership is to go to that one; 0: to nobody
	settled   bool   // all turns of the office are
	giveUpAt  int64  // when to go on leading if it has not, on Options.Now
}

// raftLoop runs the core.
func (m *Member) raftLoop() {
	ticker := time.NewTicker(m.opt.Tick) // it drops ticks that come too fast: at most one waits
	defer ticker.Stop()
	m.work()
	for {
		select {
		case <-m.mail.wake:
		case <-ticker.C:
			m.tick()
		case <-m.stop:
			return
		}
		letters := m.mail.take()
		for _, letter := range letters {
			letter()
		}
		clear(letters)
		m.work()
	}
}

func (m *Member) tick() {
	if m.raft.partial {
		return // it must not stand for election
	}
	if m.diskIsGone() {
		return // without heartbeats the others elect another leader
	}
	m.raft.core.Tick(m.opt.Now())
	m.manage()
}

// How long the disk of a leader may hang before the leadership goes to another member, and before it gives it up
// without knowing to whom.
const (
	slowDisk = int64(time.Second)
	goneDisk = 3 * int64(time.Second)
)

// diskIsGone hands the leadership over if the disk hangs. It returns true if the disk hangs so long that the member can
// lead no more, though it has nobody to hand over to.
func (m *Member) diskIsGone() bool {
	r := &m.raft
	now := m.opt.Now()
	hangs := m.disk.hangs(now)
	if hangs < slowDisk || r.core.Office() == 0 {
		return hangs >= goneDisk && r.core.Status().RaftState == raft.StateLeader
	}
	if to := m.bestSuccessor(); to != 0 && r.successor == 0 {
		m.opt.Logger.Warn("the disk hangs: another member is to lead", "for", time.Duration(hangs), "successor", to)
		m.drain(to)
	}
	if hangs >= goneDisk && len(r.core.Status().Config.Voters[0]) > 1 {
		r.core.Resign()
		return true
	}
	return false
}

// work does what the core wants done.
func (m *Member) work() {
	for {
		work := m.raft.core.Work()
		m.publish()
		m.handOver()
		if work.Idle() {
			return
		}
		if work.Group != nil {
			m.regroup(work.Group)
		}
		m.disk.add(diskWork{core: m.raft.core, writes: work.Write})
		if len(work.Send) > 0 {
			m.addBeacons(work.Send)
			m.opt.Transport.Send(work.Send)
		}
		m.give(work.Apply)
	}
}

// publish tells the others what the core says.
func (m *Member) publish() {
	c := m.raft.core
	leader, term := c.Leader()
	now := shared{leader, term, c.Office(), m.raft.successor != 0, c.Committed(), c.Confirmed(), c.LeasedUntil()}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.err != nil || now == m.shared {
		return
	}
	before := m.shared
	m.shared = now
	if now.serving() != before.serving() {
		signal(m.turns)
	}
	m.land()
	m.tell()
	m.changed.Broadcast()
}

// applyPause is how soon there is a turn for what is to be applied at a leader. Usually there is another one before.
const applyPause = 2 * time.Millisecond

// give hands over entries that are to be applied.
func (m *Member) give(apply []core.Apply) {
	if len(apply) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue.add(apply)
	switch {
	case m.shared.serving() == 0:
		signal(m.turns)
	case !m.timed:
		m.timed = true
		time.AfterFunc(applyPause, func() {
			m.mu.Lock()
			m.timed = false
			m.mu.Unlock()
			signal(m.turns)
		})
	}
}

// Step takes a message of another member.
func (m *Member) Step(message *raftpb.Message) {
	m.mail.post(func() {
		from := message.GetFrom()
		m.heardOf(from, message)
		m.takeBeacon(message)
		if m.raft.partial && message.GetType() != raftpb.MsgHeartbeat {
			return
		}
		if err := m.raft.core.Step(message); err != nil {
			m.opt.Logger.Debug("a message of another member is of no use", "from", from, "type", message.GetType(), "err", err)
		}
	})
}

// Unreachable says that messages to another member are lost.
func (m *Member) Unreachable(id uint64) {
	m.mail.post(func() {
		m.peer(id).linked = false
		m.raft.core.Unreachable(id)
	})
}

// inLoop runs f in the raft loop and returns when it has run. It returns false if the member has failed or is
// closed.
func (m *Member) inLoop(f func()) bool {
	done := make(chan struct{})
	m.mail.post(func() { f(); close(done) })
	select {
	case <-done:
		return true
	case <-m.stop:
		return false
	}
}

// journalSynced hears that the journal has the entries up to one durably. The log is cut there only when the core has
// done what the changes of configuration before it mean, so that the members' roles are recorded before. After a
// start the journal can be ahead of that.
func (m *Member) journalSynced(at raftlog.Position) {
	if applied := m.raft.core.Applied(); applied.Index < at.Index {
		at = applied
	}
	m.disk.add(diskWork{cut: at, everywhere: m.raft.everywhere})
}
