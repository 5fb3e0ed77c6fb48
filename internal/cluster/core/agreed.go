package core

import (
	"errors"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// ErrContradiction means that the log of another member has another entry than this one's
// where one of the two knows that entries are agreed on. That cannot be, unless a disk
// has lost what it had acknowledged. Raft does not see it: it answers an entry below its
// own commit as if it had it.
var ErrContradiction = errors.New("core: the log of another member contradicts this one's")

// checkAgreed returns ErrContradiction if a message of this term, or of a later leader,
// does not fit what is agreed on.
func (c *Core) checkAgreed(m *raftpb.Message) error {
	ok := true
	switch {
	case m.GetTerm() < c.term:
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

// agrees reports whether an entry of a leader may be there beside those of this log that
// are agreed on. Only those count that are on disk: others may be about to be overridden
// in the log.
func (c *Core) agrees(index, term uint64) bool {
	if index > max(c.agreed, c.applied.Index) {
		return true
	}
	own, err := c.log.Term(index)
	return err != nil || own == term
}
