package core

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// A gate keeps a member out of elections as long as it may have promised that to a
// leader.
type gate struct {
	ticks int // since the start
}

// isAlone reports whether this member is the only voter.
func (c *Core) isAlone() bool {
	conf := c.log.State().Conf
	voters := slices.Concat(conf.GetVoters(), conf.GetVotersOutgoing())
	return len(voters) == 1 && voters[0] == c.opt.ID
}

// mayVote reports whether a message may go to Raft: whether it is no request for a vote
// that this member may not answer.
func (c *Core) mayVote(m *raftpb.Message) bool {
	switch m.GetType() {
	case raftpb.MsgVote, raftpb.MsgPreVote:
		return c.gate.ticks >= c.opt.ElectionTicks
	}
	return true
}
