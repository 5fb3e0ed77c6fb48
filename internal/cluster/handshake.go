package cluster

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/entry"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

// A Handshake is a member's description of itself, which precedes all messages.
type Handshake struct {
	Last    raftlog.Position // end of its log
	Starts  uint64           // number of its starts
	Names   []uint64         // see raftlog.State
	Number  uint64           // see raftlog.MemberInfo
	Address string           // address for other members
	Level   uint64           // highest level of entries that it supports
	Time    int64            // time on its clock: the cluster's time, if a leader has sent it
	Version string           // version of its program
	Host    string           // name of its machine
	Console string           // URL of its console; empty if other machines cannot reach one
}

var (
	// ErrRolledBack means that another member has lost data because its disk was restored
	// from an older copy. That member must be removed and join as a new member.
	ErrRolledBack = errors.New("cluster: the member's disk has lost acknowledged changes; it must join again as a new member")

	// ErrConnected means that another process with the member's id is connected. Either
	// that process has ended, which this member detects within seconds, or one of the two
	// directories is a copy of the other.
	ErrConnected = errors.New("cluster: another server with this member's id is connected; unless it has just ended, one of the two directories is a copy of the other")

	// ErrCopy means that this member's directory is a copy of a directory in use.
	ErrCopy = errors.New("this directory is a copy of a member's directory")

	// ErrNotMember means that the member does not exist.
	ErrNotMember = errors.New("cluster: not a member")

	// ErrDamaged means that this member's directory has lost data, possibly acknowledged
	// changes. The member can only join again as a new member.
	ErrDamaged = errors.New("this member must join again")

	// ErrRemoved means that this member was removed. It can only join again as a new
	// member.
	ErrRemoved = errors.New("this member was removed from the cluster")

	// ErrTooOld means that another member's program does not support the entries in the
	// log.
	ErrTooOld = errors.New("cluster: the member's version of beanpole is too old for this cluster")

	// ErrOccupied means that another member, or a member of another cluster, answers at a
	// member's address: disks or addresses were swapped.
	ErrOccupied = errors.New("cluster: another member answers at its address")

	// ErrStopped means that this member has failed or is closed.
	ErrStopped = errors.New("cluster: this member has stopped")
)

// A peer is this member's state for another member.
type peer struct {
	handshake    Handshake
	clockOffset  int64            // the difference between the peer's clock and Options.Now at the handshake
	heard        int64            // time of the peer's last message, on Options.Now, or 0
	linked       bool             // the peer's handshake was accepted, and it has been reachable since
	lost         int64            // time at which the last connection to the peer was lost, on Options.Now, or 0
	refused      error            // the reason why this member refuses the peer, or nil
	refuses      error            // the reason why the peer refuses this member, or nil
	acknowledged raftlog.Position // the last entry that the peer has acknowledged to this member
	recorded     raftlog.Peer     // the peer's record in Raft's log
	copySince    int64            // time since which the peer refuses this member with ErrConnected, on Options.Now, or 0
	offered      int64            // time at which the peer was offered a snapshot, on Options.Now, or 0
	goal         uint64           // on the leader: the entry that the peer must acknowledge next to be up to date
	goalSince    int64            // time at which goal was the last committed entry, on Options.Now; 0 if there is no goal
	reached      bool             // the peer has reached a goal
	late         bool             // the peer did not reach goal in time
	contradicts  bool             // the peer stopped with committed entries that this leader lacks
	fetches      int              // number of snapshots being sent to the peer
}

// A peerTable contains the members, and this member's state for the others. The raft loop
// owns it.
type peerTable struct {
	m *Member

	members    []raftlog.MemberInfo
	lastNumber uint64               // the highest Number that a member has had
	unknown    []raftlog.MemberInfo // connected members that are not in this member's log yet; see admitUnknown
	peers      map[uint64]*peer     // state of the other members since the start
}

// peer returns the state for another member.
func (s *peerTable) peer(id uint64) *peer {
	p := s.peers[id]
	if p == nil {
		known := s.m.log.State().Peers[id]
		p = &peer{recorded: known, acknowledged: known.Acknowledged}
		s.peers[id] = p
	}
	return p
}

// heardOf records the arrival of another member's message. An acknowledgment counts only
// in a term in which this member is the leader, because another log can have another
// entry with the same index.
func (s *peerTable) heardOf(id uint64, message *raftpb.Message) {
	p := s.peer(id)
	p.heard, p.refuses = s.m.opt.Now(), nil
	if message.GetType() != raftpb.MsgAppResp || message.GetReject() {
		return
	}
	if lead := s.m.raft.core.Lead(); lead.Leader != s.m.opt.Self.ID || message.GetTerm() != lead.Term {
		return
	}
	if term, err := s.m.log.Term(message.GetIndex()); err == nil {
		if at := (raftlog.Position{Index: message.GetIndex(), Term: term}); at.After(p.acknowledged) {
			p.acknowledged = at
		}
	}
}

// Handshake returns this member's handshake.
func (m *Member) Handshake() Handshake {
	s := m.log.State()
	return Handshake{
		Last: m.log.Last(), Starts: s.Starts, Names: s.Names, Number: m.number, Address: m.opt.Self.Address, Level: entry.Level, Time: m.clock.time(), Version: m.opt.Version, Host: m.opt.Host, Console: m.opt.Console,
	}
}

// AcceptHandshake checks another member's handshake. It must be called before a message
// from that connection is passed to Step, and before a message is sent there. After an
// error, no message may follow.
func (m *Member) AcceptHandshake(from uint64, h Handshake) (err error) {
	if !m.inLoop(func() {
		err = m.raft.checkHandshake(from, h)
		if m.raft.isMember(from) {
			m.raft.peer(from).refused = err
		}
	}) {
		return ErrStopped
	}
	return err
}

func (s *peerTable) checkHandshake(from uint64, h Handshake) error {
	switch {
	case s.isMember(from):
	case h.Number > 0 && h.Number <= s.lastNumber: // a later entry of this member's log can add the member
		return ErrRemoved
	case !s.admitUnknown(from, h):
		return ErrNotMember
	}
	if h.Level < entry.Written {
		return fmt.Errorf("%w: it supports level %d, but level %d is needed", ErrTooOld, h.Level, entry.Written)
	}
	p := s.peer(from)
	switch {
	case p.linked && (h.Starts != p.handshake.Starts || h.name() != p.handshake.name()):
		return ErrConnected
	case h.lacks(p.recorded), p.acknowledged.After(h.Last), s.m.raft.core.Status().Progress[from].Match > h.Last.Index:
		return ErrRolledBack
	}
	p.linked, p.copySince, p.clockOffset = true, 0, h.Time-s.m.opt.Now()
	if p.handshake = h; h.Starts != p.recorded.Starts || h.name() != p.recorded.Name {
		p.recorded.Starts, p.recorded.Name = h.Starts, h.name()
		s.record(from, p)
	}
	return nil
}

// admitUnknown admits a member that is not in this member's log yet. Its certificate is
// valid and its number is higher than all known numbers, so it was added while this
// member was away. If it leads, only it can send the missing entries.
func (s *peerTable) admitUnknown(id uint64, h Handshake) bool {
	if contains(s.unknown, id) {
		return true
	}
	if h.Number == 0 || h.Address == "" {
		return false
	}
	s.unknown = append(s.unknown, raftlog.MemberInfo{ID: id, Address: h.Address, Number: h.Number})
	s.connect()
	return true
}

// connect passes the list of members to the transport.
func (s *peerTable) connect() {
	s.unknown = slices.DeleteFunc(s.unknown, func(k raftlog.MemberInfo) bool { return k.Number <= s.lastNumber })
	s.m.opt.Transport.SetMembers(slices.Concat(s.members, s.unknown))
}

// record stores another member's state in Raft's log.
func (s *peerTable) record(id uint64, p *peer) {
	p.recorded.Acknowledged = p.acknowledged
	log, recorded := s.m.log, p.recorded
	s.m.disk.add(diskWork{record: func() error { return errors.Join(log.SetPeer(id, recorded), log.Sync()) }})
}

func (s *peerTable) isMember(id uint64) bool { return contains(s.members, id) }
