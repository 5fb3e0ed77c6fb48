package core

import (
	"errors"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

// A gate keeps a member out of elections.
type gate struct {
	ticks  int // since the start
	silent int // of TickAsVoter, since the leader was heard

	torn     bool // the member may have lost what it acknowledged
	answered bool
	upTo     uint64                      // an index of a leader since the start
	heard    map[uint64]raftlog.Position // where the logs of others ended when they were last heard
}

// ErrBehind means that the log of another member may lack what it has acknowledged to this
// leader in this term. Raft cannot take that back, so there is nothing to say to that member before
// somebody else leads.
var ErrBehind = errors.New("core: the log of the member may lack what it has acknowledged")

// Heard says where the log of another member ended when its process began, and whether that end is torn. It must be
// called before the first Step of a message of that process, and before a message is sent to it. If the
// error is ErrBehind, no message may pass before another term.
func (c *Core) Heard(id uint64, last raftlog.Position, torn bool) error {
	c.gate.heard[id] = last
	c.look()
	if c.state != raft.StateLeader {
		return nil
	}
	match := c.node.Status().Progress[id].Match
	if match > last.Index || match > 0 && torn && !c.shares(last) {
		return ErrBehind
	}
	return nil
}

// shares reports whether a log that ends with an entry is a beginning of this leader's. One with a torn end need not be, even
// up to what it has acknowledged: if the entries that replaced others are gone, the others are back.
func (c *Core) shares(last raftlog.Position) bool {
	if last.Term == c.term {
		return true // this leader made it
	}
	term, err := c.log.Term(last.Index)
	return err == nil && term == last.Term
}

// Torn reports whether the member may have lost what it acknowledged, and takes no part in elections.
func (c *Core) Torn() bool { return c.gate.torn }

// mayCampaign reports whether ticks may go to Raft, which stands for election when it has counted
// enough of them.
func (c *Core) mayCampaign() bool {
	if !c.gate.torn {
		return true
	}
	return c.isAlone() || c.isFurthest(c.log.Last())
}

// isAlone reports whether this member is the only voter.
func (c *Core) isAlone() bool {
	voters := c.voters()
	return len(voters) == 1 && voters[0] == c.opt.ID
}

// mayVote reports whether a message may go to Raft: whether it is no request for a vote that this member
// may not answer, and does not tell it to stand for election when it may not.
func (c *Core) mayVote(m *raftpb.Message) bool {
	switch m.GetType() {
	case raftpb.MsgVote, raftpb.MsgPreVote:
	case raftpb.MsgTimeoutNow:
		return c.mayCampaign()
	default:
		return true
	}
	if c.gate.ticks < c.opt.ElectionTicks {
		return false
	}
	return !c.gate.torn || c.isFurthest(raftlog.Position{Index: m.GetIndex(), Term: m.GetLogTerm()})
}

// isFurthest reports whether every voter was heard since the start, and no log ends after at.
func (c *Core) isFurthest(at raftlog.Position) bool {
	for _, id := range c.voters() {
		last, ok := c.gate.heard[id]
		if id == c.opt.ID {
			last, ok = c.log.Last(), true
		}
		if !ok || last.After(at) {
			return false
		}
	}
	return true
}

func (c *Core) voters() []uint64 {
	conf := c.log.State().Conf
	return slices.Concat(conf.GetVoters(), conf.GetVotersOutgoing())
}

// askForGate asks the leader how far its log goes.
func (c *Core) askForGate() {
	g := &c.gate
	if !g.torn || g.answered || c.lead == 0 || c.lead == c.opt.ID {
		return
	}
	c.node.ReadIndex(c.context(0))
}

// openGate ends the time in which the member takes no part in elections, when it has what a leader had, or is active
// itself.
func (c *Core) openGate() {
	if g := &c.gate; g.torn && (c.epoch != 0 || g.answered && c.applied.Index >= g.upTo) {
		g.torn = false
	}
}
