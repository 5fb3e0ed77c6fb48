package cluster

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/entry"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

// A Handshake is what a member says of itself before anything else.
type Handshake struct {
	Last    raftlog.Position // of its log
	Starts  uint64           // how often it was started
	Names   []uint64         // see raftlog.State
	Number  uint64           // see raftlog.Member
	Address string           // at which it listens for other members
	Level   uint64           // of entries: the highest that it knows
	Time    int64            // that its clock shows: the cluster's, if it has heard of that
	Version string           // of its program
	Host    string           // the name of its machine
	Console string           // the URL of its console, for people; empty: it has none that others reach
}

var (
	// ErrRolledBack means that another member has lost what it had, because its disk was
	// restored from an older copy. It must be removed and join as a new member.
	ErrRolledBack = errors.New("cluster: the member's disk is older than what this one has heard of it: it must join again as a new member")

	// ErrConnected means that another process with the id of the member is connected.
	// Either that process has ended, which is noticed within seconds, or one of the two
	// directories is a copy of the other.
	ErrConnected = errors.New("cluster: a server that is this member, too, is connected: if it has not just ended, one of the two directories is a copy of the other")

	// ErrCopy means that the directory of this member is a copy of one that is in use.
	ErrCopy = errors.New("this directory is a copy of that of a member")

	// ErrNotMember means that there is no such member.
	ErrNotMember = errors.New("cluster: not a member")

	// ErrDamaged means that the directory of this member has lost something, perhaps what
	// the member has acknowledged. So the member can only join again as a new one.
	ErrDamaged = errors.New("this member must join again")

	// ErrRemoved means that a member was removed. It can only join again as a new one.
	ErrRemoved = errors.New("this member was removed from the cluster")

	// ErrTooOld means that the program of another member does not know all that the log can
	// have.
	ErrTooOld = errors.New("cluster: the member's version of beanpole is too old for this cluster")

	// ErrOccupied means that another member, or a member of another cluster, answers at the
	// address of a member: disks were swapped, or addresses.
	ErrOccupied = errors.New("cluster: its address belongs to another member now")

	// ErrStopped means that this member has failed or is closed.
	ErrStopped = errors.New("cluster: this member takes no part any more")
)

// A peer is what this member knows of another one.
type peer struct {
	handshake    Handshake
	ahead        int64            // at the handshake its clock showed so much more than Options.Now
	heard        int64            // when a message came last, on Options.Now; 0: none has
	linked       bool             // its handshake was accepted, and it has not been unreachable since
	lost         int64            // when the connection to it ended last, on Options.Now; 0: it never did
	refused      error            // why this member refuses it; nil: it does not
	refuses      error            // why it refuses this member
	acknowledged raftlog.Position // the last entry that it has acknowledged to this member
	recorded     raftlog.Peer     // what Raft's log has of it
	copySince    int64            // since when it refuses this one with ErrConnected, on Options.Now; 0: it does not
	offered      int64            // since when it is to fetch a snapshot, on Options.Now; 0: it is not
	goal         uint64           // at the leader: the entry that it must acknowledge next to be up to date
	goalSince    int64            // when goal was the last committed entry, on Options.Now; 0 if there is no goal
	late         bool             // it takes too long
	contradicts  bool             // it stopped with committed entries that this member, the leader, lacks
	fetches      int              // snapshots that it is sent at the moment
}

// A peerTable has the members, and what this one knows of the others. The raft loop owns
// it.
type peerTable struct {
	m *Member

	members    []raftlog.Member
	lastNumber uint64           // the highest Number that a member was ever given
	unknown    []raftlog.Member // connected members that are not known yet; see admitUnknown
	peers      map[uint64]*peer // what is known of other members in this life
}

// peer returns what is known of another member.
func (s *peerTable) peer(id uint64) *peer {
	p := s.peers[id]
	if p == nil {
		known := s.m.log.State().Peers[id]
		p = &peer{recorded: known, acknowledged: known.Acknowledged}
		s.peers[id] = p
	}
	return p
}

// heardOf notes that a message of another member has come. An acknowledgement counts only
// in the term in which this member leads: another log can have another entry of the same
// index.
func (s *peerTable) heardOf(id uint64, message *raftpb.Message) {
	p := s.peer(id)
	p.heard, p.refuses = s.m.opt.Now(), nil
	if message.GetType() != raftpb.MsgAppResp || message.GetReject() {
		return
	}
	if leader, term := s.m.raft.core.Leader(); leader != s.m.opt.Self.ID || message.GetTerm() != term {
		return
	}
	if term, err := s.m.log.Term(message.GetIndex()); err == nil {
		if at := (raftlog.Position{Index: message.GetIndex(), Term: term}); at.After(p.acknowledged) {
			p.acknowledged = at
		}
	}
}

// Handshake returns what this member says of itself.
func (m *Member) Handshake() Handshake {
	s := m.log.State()
	return Handshake{
		Last: m.log.Last(), Starts: s.Starts, Names: s.Names, Number: m.number, Address: m.opt.Self.Address, Level: entry.Level, Time: m.clock.time(), Version: m.opt.Version, Host: m.opt.Host, Console: m.opt.Console,
	}
}

// AcceptHandshake takes the handshake of another member. It must be called before Step
// gets a message of that connection, and before a message is sent there. After an error no
// message may pass.
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
	case h.Number > 0 && h.Number <= s.lastNumber: // what comes next in this member's log may name it
		return ErrRemoved
	case !s.admitUnknown(from, h):
		return ErrNotMember
	}
	if h.Level < entry.Written {
		return fmt.Errorf("%w: it knows level %d, and level %d is needed", ErrTooOld, h.Level, entry.Written)
	}
	p := s.peer(from)
	switch {
	case p.linked && (h.Starts != p.handshake.Starts || h.name() != p.handshake.name()):
		return ErrConnected
	case h.lacks(p.recorded), p.acknowledged.After(h.Last), s.m.raft.core.Status().Progress[from].Match > h.Last.Index:
		return ErrRolledBack
	}
	p.linked, p.copySince, p.ahead = true, 0, h.Time-s.m.opt.Now()
	if p.handshake = h; h.Starts != p.recorded.Starts || h.name() != p.recorded.Name {
		p.recorded.Starts, p.recorded.Name = h.Starts, h.name()
		s.record(from, p)
	}
	return nil
}

// maxUnknown is how many members may be connected that are not known yet.
const maxUnknown = 16

// admitUnknown lets a member connect that this one does not know yet. Its certificate is
// good and its number is higher than any known one, so it was added while this one was
// away. If it leads, this one can hear of that only from it. admitUnknown returns false if
// too many unknown members are connected.
func (s *peerTable) admitUnknown(id uint64, h Handshake) bool {
	if slices.ContainsFunc(s.unknown, func(k raftlog.Member) bool { return k.ID == id }) {
		return true
	}
	if h.Number == 0 || h.Address == "" || len(s.unknown) == maxUnknown {
		return false
	}
	s.unknown = append(s.unknown, raftlog.Member{ID: id, Address: h.Address, Number: h.Number})
	s.connect()
	return true
}

// connect tells the transport which members there are.
func (s *peerTable) connect() {
	s.unknown = slices.DeleteFunc(s.unknown, func(k raftlog.Member) bool { return k.Number <= s.lastNumber })
	s.m.opt.Transport.SetMembers(slices.Concat(s.members, s.unknown))
}

// record writes what is known of another member.
func (s *peerTable) record(id uint64, p *peer) {
	p.recorded.Acknowledged = p.acknowledged
	s.m.disk.add(diskWork{peer: &peerRecord{id, p.recorded}})
}

func (s *peerTable) isMember(id uint64) bool {
	for _, k := range s.members {
		if k.ID == id {
			return true
		}
	}
	return false
}
