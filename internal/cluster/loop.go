package cluster

import (
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/core"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

// raftState is owned by the raft loop.
type raftState struct {
	core       *core.Core
	members    []raftlog.Member
	numbers    uint64            // the highest Number that a member was ever given
	unknown    []raftlog.Member  // connected members that are not known yet; see admitUnknown
	ledSince   int64             // since when shared.leader is what it is, on Options.Now
	told       uint64            // the leader whose time was heard last; this member, if nobody's was and it has led
	peers      map[uint64]*peer  // what is known of other members in this life
	everywhere uint64            // all members have the log up to here, as far as is known
	near       uint64            // all that the leader can reach have; at a follower, the leader keeps what comes after it
	goals      map[uint64]uint64 // learner -> the entry with which it has caught up

	// Of a member that needs entries which are cut; see snapshot.go.
	fetching bool             // a snapshot is fetched, or was and is not installed or dropped
	fetched  *raftpb.Snapshot // Raft has not been asked yet

	successor uint64 // the leadership is to go to that one; 0: to nobody
	settled   bool   // all turns of the epoch are
	giveUpAt  int64  // when to go on leading if it has not, on Options.Now
	health    health
}

// raftLoop runs the core.
func (m *Member) raftLoop() {
	defer close(m.looped)
	defer m.endIfUnreadable()
	ticker := time.NewTicker(m.opt.Tick) // it drops ticks that come too fast: at most one waits
	defer ticker.Stop()
	m.work()
	for {
		select {
		case <-m.mail.wake:
		case <-ticker.C:
			m.tick()
			m.note()
		case <-m.stop:
			return
		}
		events := m.mail.take()
		for _, e := range events {
			m.handle(e)
		}
		clear(events)
		m.work()
	}
}

// endIfUnreadable ends a member whose log cannot be read: Raft's core can only panic then.
func (m *Member) endIfUnreadable() {
	switch r := recover().(type) {
	case nil:
	case *raftlog.ReadError:
		m.fail(logError(r))
	default:
		panic(r)
	}
}

func (m *Member) tick() {
	now := m.opt.Now()
	if m.stepsDown(now) {
		return // without heartbeats the others elect another leader
	}
	m.raft.core.Tick(now)
	m.offerSnapshot()
	m.fetchSnapshot()
	m.manage()
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
	now := shared{leader, term, c.Epoch(), m.raft.successor != 0, c.Committed(), c.Confirmed(), c.LeasedUntil()}
	if now.epoch != 0 && m.raft.told == 0 {
		m.agreeOnTime()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.AwaitsRebuilt() && (m.phase == following || m.phase == activating) { // there is no epoch that the engine has to end
		m.mail.post(engineFollows{})
	}
	if m.phase == failed || now == m.shared {
		return
	}
	before := m.shared
	m.shared = now
	if now.leader != before.leader {
		m.raft.ledSince = m.opt.Now()
	}
	if now.leader != before.leader || now.term != before.term || now.epoch != before.epoch {
		m.note()
	}
	switch {
	case m.phase == leading && now.offered() != m.epoch:
		m.drain()
	case m.phase == following && now.leader == m.opt.Self.ID:
		m.activate()
	case m.phase == activating && now.leader != m.opt.Self.ID:
		m.follow()
	case m.phase == activating:
		signal(m.turns)
	}
	m.land()
	m.tell()
	m.changed.Broadcast()
}

// How soon there is a turn for what is to be applied. At a leader there usually is another one before.
const (
	leaderPause   = 2 * time.Millisecond
	followerPause = 10 * time.Millisecond // so many entries share a turn
)

// give hands over entries that are to be applied.
func (m *Member) give(apply []core.Apply) {
	if len(apply) == 0 {
		return
	}
	if m.opt.meddle != nil {
		apply = m.opt.meddle(m, apply)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue.add(apply)
	pause := leaderPause
	switch {
	case m.phase == leading:
	case m.phase == activating, m.shared.leader == 0:
		signal(m.turns) // nobody is served before all is applied
		return
	default:
		pause = followerPause
	}
	if !m.timed {
		m.timed = true
		time.AfterFunc(pause, func() {
			m.mu.Lock()
			m.timed = false
			m.mu.Unlock()
			signal(m.turns)
		})
	}
}
