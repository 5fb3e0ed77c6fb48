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

// Forget reports that the process of the leader has ended for certain. Then the members
// elect another leader before the election timeout. Forget returns false if another
// member leads now.
func (c *Core) Forget(leader, term uint64) bool {
	if c.lead.Leader != leader || c.lead.Term != term || leader == c.opt.ID || leader == 0 {
		return false
	}
	err := c.node.ForgetLeader()
	c.observe()
	return err == nil && c.lead.Leader == 0
}

// Stand makes this member run for election now, if it has had no leader since Forget in
// that term.
func (c *Core) Stand(term uint64) {
	if c.lead.Leader == 0 && c.lead.Term == term && c.ticks >= electionTicks {
		c.node.Campaign() // it fails if this member is not a voter
		c.observe()
	}
}
