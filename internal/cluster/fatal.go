package cluster

import (
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

// A member stops permanently when it is removed, when its disk was rolled back, or when
// its directory is a copy. It first records the reason in its log, so that it never
// starts again.

// name returns the name of the last start, or 0 if it has none.
func (h *Handshake) name() uint64 {
	if len(h.Names) == 0 {
		return 0
	}
	return h.Names[len(h.Names)-1]
}

// lacks reports whether a handshake lacks a start that this member has recorded. After a
// restore of its disk, a member can count as many starts as before, but with other names.
func (h *Handshake) lacks(known raftlog.Peer) bool {
	if h.Starts < known.Starts {
		return true
	}
	since := h.Starts - known.Starts
	return known.Name != 0 && since < uint64(len(h.Names)) && h.Names[uint64(len(h.Names))-1-since] != known.Name
}

// endIfUnwanted stops this member if another member has answered its handshake with a
// permanent error.
func (s *peerTable) endIfUnwanted(by uint64, err error) {
	switch {
	case errors.Is(err, ErrRemoved):
		s.m.opt.Logger.Debug("another member reports that this member was removed", "member", by)
		s.m.disk.leave()
	case errors.Is(err, ErrRolledBack):
		s.m.disk.stopWith(fmt.Sprintf("its disk lacks data that it had reported to member %d: it was restored from a copy, or a copy of the directory has run", by))
	case errors.Is(err, ErrConnected):
		s.isCopy(by)
	}
}

// copyPatience is the time in nanoseconds within which another member must detect that
// the previous process has ended.
const copyPatience = 15_000_000_000

// isCopy stops this member if another member has been connected to another process with
// this member's id for too long.
func (s *peerTable) isCopy(by uint64) {
	now, p := s.m.opt.Now(), s.peer(by)
	if p.copySince == 0 {
		p.copySince = now
	}
	if now-p.copySince > copyPatience {
		s.m.disk.stopWith(fmt.Sprintf("%v: member %d is connected to the server that runs with the original", ErrCopy, by))
	}
}

// contradicted handles a message from a member whose log contradicts this member's log. A
// follower stops, because the leader's log is the cluster's. Both members log the
// contradiction.
func (r *raftLoop) contradicted(message *raftpb.Message) {
	from := message.GetFrom()
	if message.GetType() == raftpb.MsgAppResp {
		r.peer(from).contradicts = true
		r.m.opt.Logger.Error("a member has committed entries that this leader lacks: a disk was rolled back, and acknowledged jobs "+
			"might exist on that member only; keep a copy of its directory before it joins again", "member", from, "last", r.m.log.Last().Index)
		return
	}
	r.m.opt.Transport.Send([]*raftpb.Message{{
		Type: raftpb.MsgAppResp.Enum(), From: &r.m.opt.Self.ID, To: &from, Term: message.Term, Index: message.Index, Reject: new(true), Context: []byte(contradiction),
	}})
	r.m.disk.stopWith(fmt.Sprintf("its committed entries up to %d differ from those of member %d, the leader: a disk of the cluster was rolled back, "+
		"and acknowledged jobs might exist here only; keep a copy of this directory", r.core.Applied().Index, from))
}

// contradiction is the context of the rejection that informs a leader of the reason.
const contradiction = "contradiction"

func isContradiction(message *raftpb.Message) bool {
	return message.GetType() == raftpb.MsgAppResp && string(message.GetContext()) == contradiction
}

// leave stops this member permanently, because it was removed.
func (d *disk) leave() {
	d.stop(ErrRemoved, func() error {
		with := d.m.log.State().Membership
		with.Members = without(with.Members, d.m.opt.Self.ID)
		return d.m.log.SetMembership(with)
	})
}

// stopWith stops this member permanently, for the given reason.
func (d *disk) stopWith(reason string) {
	d.stop(fatalError(reason), func() error { return d.m.log.SetFatalReason(reason) })
}

// stop stops this member when the reason is recorded.
func (d *disk) stop(why error, record func() error) {
	d.add(diskWork{isLast: true, record: func() error {
		err := errors.Join(record(), d.m.log.Sync())
		if err == nil {
			d.m.fail(why)
		}
		return err
	}})
}

// fatalError returns the error for a recorded reason.
func fatalError(reason string) error {
	if why, ok := strings.CutPrefix(reason, ErrCopy.Error()); ok {
		return fmt.Errorf("%w%s", ErrCopy, why)
	}
	return fmt.Errorf("%w: %s", ErrDamaged, reason)
}
