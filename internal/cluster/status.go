package cluster

import (
	"errors"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/cluster/entry"
)

// A Role is what a member does in the cluster.
type Role string

// The roles of members.
const (
	Leader  Role = "leader"
	Voter   Role = "voter"
	Learner Role = "learner" // it has no vote yet: it is catching up
)

// A Status is what a member knows of the cluster. Only the leader knows how far the others are.
type Status struct {
	Self    uint64
	Leader  uint64 // 0: nobody is known
	Term    uint64
	Quorum  bool // a majority is heard: changes can be agreed on
	Commit  uint64
	Members []MemberStatus
}

// A MemberStatus is what is known of a member. Applied and Lag are known of all members at the leader, and
// elsewhere of the member itself.
type MemberStatus struct {
	ID        uint64
	Address   string
	Role      Role
	Reachable bool
	Applied   uint64 // the last entry that it has, of those that are committed
	Lag       uint64 // entries that are committed and that it does not have
	Cut       bool   // it needs entries that the leader does not have any more
	Version   string // "": not known
}

// Status returns what this member knows of the cluster.
func (m *Member) Status() (s Status, err error) {
	if !m.inLoop(func() { s = m.status() }) {
		return Status{}, ErrStopped
	}
	return s, nil
}

func (m *Member) status() Status {
	c := m.raft.core
	raft := c.Status()
	s := Status{Self: m.opt.Self.ID, Commit: raft.GetCommit()}
	s.Leader, s.Term = c.Leader()
	first, _ := m.log.FirstIndex()
	for _, k := range m.raft.members {
		ms := MemberStatus{ID: k.ID, Address: k.Address, Role: Voter}
		if hasKey(raft.Config.Learners, k.ID) {
			ms.Role = Learner
		}
		if k.ID == s.Leader {
			ms.Role = Leader
		}
		if k.ID == s.Self {
			ms.Reachable, ms.Applied, ms.Version = true, c.Applied().Index, m.opt.Version
		} else {
			p := m.peer(k.ID)
			ms.Version = p.hello.Version
			ms.Reachable = m.isReachable(k.ID) || p.linked && s.Leader != s.Self // members that follow send each other nothing
			if of, ok := raft.Progress[k.ID]; ok {
				ms.Applied = min(of.Match, s.Commit)
				ms.Cut = of.Match+1 < first
			}
		}
		if ms.Applied > 0 || len(raft.Progress) > 0 {
			ms.Lag = s.Commit - min(ms.Applied, s.Commit)
		}
		s.Members = append(s.Members, ms)
	}
	s.Quorum = s.Leader != 0 && (s.Leader != s.Self || c.Leased(m.opt.Now()) || m.hearsMajority())
	return s
}

// isReachable reports whether another member was heard lately.
func (m *Member) isReachable(id uint64) bool {
	p := m.peer(id)
	return id == m.opt.Self.ID || p.heard != 0 && m.opt.Now()-p.heard < 10*int64(m.opt.Tick)
}

func (m *Member) hearsMajority() bool {
	for _, half := range m.raft.core.Status().Config.Voters {
		heard := 0
		for id := range half {
			if m.isReachable(id) {
				heard++
			}
		}
		if len(half) > 0 && heard <= len(half)/2 {
			return false
		}
	}
	return true
}

// maxLag is how far a member may be behind the leader's time and be ready, in nanoseconds.
const maxLag = 10_000_000_000

// Ready returns nil if this member knows a leader and has nearly all that is committed.
func (m *Member) Ready() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.err != nil:
		return m.err
	case m.closed:
		return ErrStopped
	case m.shared.leader == 0:
		return errors.New("cluster: no leader is known")
	}
	if e := m.queue.next(); e != nil && m.shared.serving() == 0 {
		stamp, err := entry.Stamp(e.GetData())
		if behind := m.clock.time() - stamp; err == nil && behind > maxLag {
			return fmt.Errorf("cluster: this member is %d s behind", behind/1e9)
		}
	}
	return nil
}
