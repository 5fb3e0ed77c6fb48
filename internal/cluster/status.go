package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/raft/v3/quorum"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
	"github.com/beanpole-mq/beanpole/internal/cluster/entry"
)

// A Status is a member's view of the cluster.
type Status struct {
	apitype.Cluster
	Commit   uint64
	At       int64            // time of the view, in ns on the member's clock
	Contacts map[uint64]int64 // time of the last message of each other member
}

// Status returns this member's view at its last tick, or at a later change of the members
// or the leader. It does not block, so a turn can call it. The caller must not change
// Members.
func (m *Member) Status() (Status, error) {
	if m.stopped() {
		return Status{}, ErrStopped
	}
	return *m.noted.Load(), nil
}

// Heard returns the other members from which a message has arrived since this member
// became the leader. During the first heartbeats, it also returns connected members,
// because a majority can elect a leader before the others answer. It returns nil if this
// member is not the leader.
func (m *Member) Heard() (members []uint64) {
	m.inLoop(func() {
		if leader := m.raft.core.Lead().Leader; leader != m.opt.Self.ID {
			return
		}
		since := m.raft.ledSince
		early := m.opt.Now()-since < heardTicks*int64(m.opt.Tick)
		for _, k := range m.raft.members {
			if p := m.raft.peer(k.ID); k.ID != m.opt.Self.ID && (p.heard > since || early && p.linked) {
				members = append(members, k.ID)
			}
		}
	})
	return members
}

// heardTicks is the number of ticks within which a connected member should send a
// message.
const heardTicks = 3

// note updates Status.
func (r *raftLoop) note() { r.m.noted.Store(new(r.status())) }

func (r *raftLoop) status() Status {
	c := r.core
	raft := c.Status()
	s := Status{Commit: raft.GetCommit(), At: r.m.opt.Now(), Contacts: make(map[uint64]int64, len(r.members))}
	s.Self, s.Members = r.m.opt.Self.ID, []apitype.ClusterMember{}
	lead := c.Lead()
	s.Leader, s.Term = lead.Leader, lead.Term
	now := s.At
	s.Since = (now - r.ledSince) / int64(time.Second)
	for _, k := range r.members {
		ms := apitype.ClusterMember{ID: k.ID, Address: k.Address, Role: apitype.Voter}
		if hasKey(raft.Config.Learners, k.ID) {
			ms.Role = apitype.Learner
		}
		if k.ID == s.Leader {
			ms.Role = apitype.Leader
		}
		if k.ID == s.Self {
			ms.Reachable, ms.Version, ms.Host, ms.Console, ms.Heard = true, r.m.opt.Version, r.m.opt.Host, r.m.opt.Console, new(int64)
			ms.Progress = progress(c.Applied().Index, s.Commit)
		} else {
			p := r.peer(k.ID)
			s.Contacts[k.ID] = p.heard
			ms.Version, ms.Host, ms.Console = p.handshake.Version, p.handshake.Host, p.handshake.Console
			// Followers exchange no messages. A new leader has heard from few members,
			// and a large job delays heartbeats.
			ms.Reachable = r.isReachable(k.ID) || p.linked && (s.Leader != s.Self || now-max(p.heard, r.ledSince) < int64(linkPatience))
			ms.MustRejoin = errors.Is(p.refused, ErrRolledBack)
			ms.KeepCopy, ms.CatchingUp = p.contradicts, p.late
			ms.Refused, ms.Refuses = plain(p.refused), plain(p.refuses)
			if p.refuses == ErrOccupied {
				ms.Refused, ms.Refuses = ms.Refuses, ""
			}
			if of := raft.Progress[k.ID]; of.Match > 0 {
				ms.Progress = progress(of.Match, s.Commit)
			}
			if last := max(p.heard, p.lost); ms.Reachable {
				ms.Heard = new(int64)
			} else if last > 0 {
				ms.Heard = new((now - last) / int64(time.Second))
			}
		}
		s.Members = append(s.Members, ms)
	}
	s.Quorum = s.Leader != 0 && (s.Leader != s.Self || r.m.opt.Now() < c.LeasedUntil() || r.hearsMajority())
	return s
}

// linkPatience is the silence after which a leader no longer counts a connected member as
// reachable. The transport closes silent connections after the same time.
const linkPatience = 5 * time.Second

func progress(applied, commit uint64) *apitype.Progress {
	applied = min(applied, commit)
	return &apitype.Progress{Applied: applied, Lag: commit - applied}
}

// plain returns the text of an error without the prefix of this package. It returns ""
// for nil.
func plain(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), "cluster: ")
}

// isReachable reports whether a message of the member has arrived recently, and the
// connection was not lost since.
func (s *peerTable) isReachable(id uint64) bool {
	p := s.peer(id)
	return id == s.m.opt.Self.ID || p.heard > p.lost && s.m.opt.Now()-p.heard < 10*int64(s.m.opt.Tick)
}

func (s *peerTable) hearsMajority() bool {
	voters := s.m.raft.core.Status().Config.Voters
	heard := make(map[uint64]bool)
	for id := range voters.IDs() {
		heard[id] = s.isReachable(id)
	}
	return voters.VoteResult(heard) == quorum.VoteWon
}

// maxLag is the maximum age of a ready member's next entry, in nanoseconds.
const maxLag = 10_000_000_000

// Ready returns nil if this member has a leader, nearly all committed entries, and a disk
// that it can write.
func (m *Member) Ready() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.phase == failed:
		return cmp.Or(m.err, ErrStopped)
	case m.shared.lead.Leader == 0:
		return errors.New("cluster: this member has no leader")
	case m.phase == installing:
		return errors.New("cluster: this member is installing the whole queue")
	}
	if err := m.ails.unready(); err != nil {
		return err
	}
	if e := m.queue.next(); e != nil && m.phase != leading {
		stamp, err := entry.Stamp(e.GetData())
		if behind := m.clock.time() - stamp; err == nil && behind > maxLag {
			return fmt.Errorf("cluster: this member is %d s behind", behind/1e9)
		}
	}
	return nil
}
