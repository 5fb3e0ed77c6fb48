package cluster

import (
	"encoding/binary"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/core"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

// raftState is owned by the raft loop.
type raftState struct {
	core    *core.Core
	members []raftlog.Member
	told    uint64            // the leader whose time was heard last
	peers   map[uint64]*peer  // what is known of other members in this life
	shared  uint64            // all members have the log up to here, as far as is known
	goals   map[uint64]uint64 // learner -> the entry with which it has caught up
	swaps   map[uint64]uint64 // learner -> the voter in whose place it comes

	successor uint64 // the leadership is to go to that one; 0: to nobody
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
			m.raft.core.Tick(m.opt.Now())
			m.manage()
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
		m.disk.add(diskWork{writes: work.Write})
		if len(work.Send) > 0 {
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
		m.hear(message)
		if err := m.raft.core.Step(message); err != nil {
			m.opt.Logger.Debug("a message of another member is of no use", "from", from, "type", message.GetType(), "err", err)
		}
	})
}

// Unreachable says that messages to another member are lost.
func (m *Member) Unreachable(id uint64) {
	m.mail.post(func() { m.raft.core.Unreachable(id) })
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

// beaconLength is the length of what a leader tells all members with its heartbeats: the cluster's time,
// and up to which entry all members have the log.
const beaconLength = 16

func (m *Member) beacon() []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, beaconLength), uint64(m.clock.time()))
	return binary.LittleEndian.AppendUint64(b, m.raft.shared)
}

// hear takes the leader's beacon from a message.
func (m *Member) hear(message *raftpb.Message) {
	b := core.BeaconOf(message)
	_, term := m.raft.core.Leader()
	if len(b) < beaconLength || message.GetTerm() < term {
		return
	}
	m.clock.hear(int64(binary.LittleEndian.Uint64(b)), message.GetFrom() != m.raft.told)
	m.raft.told = message.GetFrom()
	m.raft.shared = binary.LittleEndian.Uint64(b[8:])
}

// journalSynced hears that the journal has the entries up to one durably. The loop has done by then what the
// changes of configuration among them mean, so the roles of the members are recorded before the log is cut.
func (m *Member) journalSynced(at raftlog.Position) {
	m.disk.add(diskWork{cut: at, shared: m.raft.shared})
}
