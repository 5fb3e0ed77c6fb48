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

// isAlone reports whether a member is the only voter.
func isAlone(id uint64, conf *raftpb.ConfState) bool {
	voters := slices.Concat(conf.GetVoters(), conf.GetVotersOutgoing())
	return len(voters) == 1 && voters[0] == id
}

// mayVote reports whether a message may go to Raft: whether it is no request for a vote
// that this member may not answer.
func (g *gate) mayVote(m *raftpb.Message, electionTicks int) bool {
	switch m.GetType() {
	case raftpb.MsgVote, raftpb.MsgPreVote:
		return g.ticks >= electionTicks
	}
	return true
}
