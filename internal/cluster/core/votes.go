package core

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// isAlone reports whether a member is the only voter.
func isAlone(id uint64, conf *raftpb.ConfState) bool {
	voters := slices.Concat(conf.GetVoters(), conf.GetVotersOutgoing())
	return len(voters) == 1 && voters[0] == id
}

// Forget must be called when the process of the leader has certainly ended. The members
// then elect another leader before the election timeout. Forget returns false if another
// member is the leader now.
func (c *Core) Forget(leader, term uint64) bool {
	if c.lead.Leader != leader || c.lead.Term != term || leader == c.opt.ID || leader == 0 {
		return false
	}
	err := c.node.ForgetLeader()
	c.observe()
	return err == nil && c.lead.Leader == 0
}

// Stand makes this member run for election at once, unless it has had a leader since
// Forget in that term.
func (c *Core) Stand(term uint64) {
	if c.lead.Leader == 0 && c.lead.Term == term && c.ticks >= electionTicks {
		c.node.Campaign() // fails if this member is not a voter
		c.observe()
	}
}
