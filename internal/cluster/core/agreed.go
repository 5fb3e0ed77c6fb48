package core

import (
	"errors"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// ErrContradiction means that another member's log has a different entry at an index that
// one of the two members considers committed. This happens only if a disk has lost
// acknowledged entries. Raft does not detect it, because it acknowledges any entry below
// its own commit index.
var ErrContradiction = errors.New("core: another member's log contradicts this member's log")

// checkAgreed returns ErrContradiction if a message in this term, or from a later leader,
// contradicts the committed entries.
func (c *Core) checkAgreed(m *raftpb.Message) error {
	ok := true
	switch {
	case m.GetTerm() < c.lead.Term:
	case m.GetType() == raftpb.MsgApp:
		ok = c.agrees(m.GetIndex(), m.GetLogTerm())
		for _, e := range m.GetEntries() {
			ok = ok && c.agrees(e.GetIndex(), e.GetTerm())
		}
	case m.GetType() == raftpb.MsgAppResp && c.state == raft.StateLeader && !m.GetReject():
		ok = m.GetIndex() <= c.last
	}
	if !ok {
		return ErrContradiction
	}
	return nil
}

// agrees reports whether a leader's entry is compatible with the committed entries of
// this log. It considers only durable entries, because the log might be about to override
// the others.
func (c *Core) agrees(index, term uint64) bool {
	if index > max(c.agreed, c.applied.Index) {
		return true
	}
	own, err := c.log.Term(index)
	return err != nil || own == term
}
