package cluster

import (
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

// A member stops for good when it was removed, when its disk was rolled back, or when its
// directory is a copy. It records that in its log first, so that no later start takes part.

// name returns the name of the start; 0: it has none.
func (h *Handshake) name() uint64 {
	if len(h.Names) == 0 {
		return 0
	}
	return h.Names[len(h.Names)-1]
}

// lacks reports whether the member of a handshake does not remember a start that this one
// knows of. An older copy of its disk may have counted as many starts since, but their names
// are others.
func (h *Handshake) lacks(known raftlog.Peer) bool {
	if h.Starts < known.Starts {
		return true
	}
	since := h.Starts - known.Starts
	return known.Name != 0 && since < uint64(len(h.Names)) && h.Names[uint64(len(h.Names))-1-since] != known.Name
}

// endIfUnwanted stops this member if another one has answered its handshake with an error
// that is for good.
func (s *peerTable) endIfUnwanted(by uint64, err error) {
	switch {
	case errors.Is(err, ErrRemoved):
		s.m.opt.Logger.Debug("another member says that this one was removed", "member", by)
		s.m.disk.leave()
	case errors.Is(err, ErrRolledBack):
		s.m.disk.stopWith(fmt.Sprintf("its disk is older than what member %d has heard of it: it was restored from a copy, or a copy of the directory has run", by))
	case errors.Is(err, ErrConnected):
		s.isCopy(by)
	}
}

// copyPatience is how long another member may take to notice that the process before this
// one has ended, in nanoseconds.
const copyPatience = 15_000_000_000

// isCopy stops this member if another one has been connected to another process with its
// id for too long.
func (s *peerTable) isCopy(by uint64) {
	now, p := s.m.opt.Now(), s.peer(by)
	if p.copySince == 0 {
		p.copySince = now
	}
	if now-p.copySince > copyPatience {
		s.m.disk.stopWith(fmt.Sprintf("%v: member %d is connected to the server that runs with the original", ErrCopy, by))
	}
}

// contradicted handles a message of a member whose log contradicts this one's. A follower
// stops, as the cluster has what the leader sends. Both log it.
func (r *raftLoop) contradicted(message *raftpb.Message) {
	from := message.GetFrom()
	if message.GetType() == raftpb.MsgAppResp {
		r.peer(from).contradicts = true
		r.m.opt.Logger.Error("a member knows entries to be agreed on that this leader does not have: a disk was rolled back, and jobs that were acknowledged "+
			"may be on that member only: keep a copy of its directory before it joins again", "member", from, "last", r.m.log.Last().Index)
		return
	}
	r.m.opt.Transport.Send([]*raftpb.Message{{
		Type: raftpb.MsgAppResp.Enum(), From: &r.m.opt.Self.ID, To: &from, Term: message.Term, Index: message.Index, Reject: new(true), Context: []byte(contradiction),
	}})
	r.m.disk.stopWith(fmt.Sprintf("the entries that it knows to be agreed on, up to %d, are not those of member %d, which leads: a disk of the cluster was rolled back, "+
		"and jobs that were acknowledged may be here only: keep a copy of this directory", r.core.Applied().Index, from))
}

// contradiction is the context of the rejection that tells a leader why the member stops.
const contradiction = "contradiction"

func isContradiction(message *raftpb.Message) bool {
	return message.GetType() == raftpb.MsgAppResp && string(message.GetContext()) == contradiction
}

// leave stops this member for good: it was removed.
func (d *disk) leave() { d.add(diskWork{removed: true}) }

// stopWith stops this member for good, and says why.
func (d *disk) stopWith(verdict string) { d.add(diskWork{verdict: verdict}) }

// verdictError returns the error that a verdict stands for.
func verdictError(verdict string) error {
	if why, ok := strings.CutPrefix(verdict, ErrCopy.Error()); ok {
		return fmt.Errorf("%w%s", ErrCopy, why)
	}
	return fmt.Errorf("%w: %s", ErrDamaged, verdict)
}

// writeVerdict records that this member must not go on, and stops it.
func (d *disk) writeVerdict(w diskWork) error {
	var err, why error
	if w.removed {
		with := d.m.log.State().Membership
		with.Members = without(with.Members, d.m.opt.Self.ID)
		err, why = d.m.log.SetMembership(with), ErrRemoved
	} else {
		err, why = d.m.log.SetVerdict(w.verdict), verdictError(w.verdict)
	}
	if err := errors.Join(err, d.m.log.Sync()); err != nil {
		return err
	}
	d.m.fail(why)
	return nil
}
