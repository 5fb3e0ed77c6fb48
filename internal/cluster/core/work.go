package core

import (
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// Work is the work that the core requests.
type Work struct {
	Send  []*raftpb.Message // to other members; can be lost
	Write []Write           // for the log, in this order, after the writes of earlier Works
	Apply []Apply           // to apply in this order, after the entries of earlier Works
	Roles *Roles            // roles to record, unless nil; the latest roles apply
}

// A Write must be appended to the log. If it has responses, the caller must pass them to
// Done when the whole Write is durable. Without responses, it needs no sync. If it has a
// snapshot, the log starts after that snapshot. The snapshot must be installed when the
// Write is durable; see [Core.Installed].
type Write struct {
	Snapshot  *raftpb.Snapshot  // before the other data; can be nil
	Hard      *raftpb.HardState // can be nil
	Entries   []*raftpb.Entry
	Responses []*raftpb.Message
}

// An Apply contains entries that all members apply, in this order. The caller must pass
// the responses to Done, in the order of the Applies. Entries without data, and entries
// of types other than [raftpb.EntryNormal], have a meaning only for the core.
type Apply struct {
	Entries   []*raftpb.Entry
	Responses []*raftpb.Message
}

// Roles are the members' roles after the change of configuration at Index.
type Roles struct {
	Conf    *raftpb.ConfState
	Index   uint64
	Context []byte // of the change or, if the change has none, of the previous change in the same Work
}

// Idle reports whether there is no work.
func (w *Work) Idle() bool {
	return len(w.Send)+len(w.Write)+len(w.Apply) == 0 && w.Roles == nil
}

// Work returns the work since the last call.
func (c *Core) Work() Work {
	c.gather()
	work := c.work
	c.work = Work{}
	return work
}

// gather collects the work that Raft requests.
func (c *Core) gather() {
	for c.node.HasReady() {
		ready := c.node.Ready()
		for _, m := range ready.Messages {
			switch m.GetTo() {
			case raft.LocalAppendThread:
				if c.lead.Epoch != 0 {
					c.proposals.write(m.GetEntries())
				}
				if n := len(m.GetEntries()); n > 0 {
					c.last = m.GetEntries()[n-1].GetIndex()
				}
				if w := c.writeOf(m); !w.isEmpty() {
					c.work.Write = append(c.work.Write, w)
				}
			case raft.LocalApplyThread:
				c.work.Apply = append(c.work.Apply, Apply{Entries: m.GetEntries(), Responses: m.GetResponses()})
			default:
				c.send(m)
			}
		}
		for _, r := range ready.ReadStates {
			c.answered(r)
		}
		c.observe()
	}
}

// proposals tracks the proposals of an epoch. Invariant:
//
//  4. written contains, in order, the indexes of the entries that Raft has returned for
//     writing and that are not committed. committed counts the earlier ones of the epoch.
type proposals struct {
	written   []uint64
	committed uint64
}

// start starts a new epoch, discarding the previous epoch's entries.
func (p *proposals) start() { p.written, p.committed = p.written[:0], 0 }

// write records the entries that Raft returns for writing.
func (p *proposals) write(entries []*raftpb.Entry) {
	for _, e := range entries {
		if e.GetType() == raftpb.EntryNormal && len(e.GetData()) > 0 {
			p.written = append(p.written, e.GetIndex())
		}
	}
}

// commit records that the entries up to index are committed.
func (p *proposals) commit(index uint64) {
	for len(p.written) > 0 && p.written[0] <= index {
		p.written = p.written[1:]
		p.committed++
	}
}

// writeOf returns the Write of a message. A commit index is not a promise, so it is
// written only together with other data.
func (c *Core) writeOf(m *raftpb.Message) Write {
	w := Write{Snapshot: m.GetSnapshot(), Entries: m.GetEntries(), Responses: m.GetResponses()}
	promise := len(w.Entries) > 0 || w.Snapshot != nil
	if m.GetTerm() != 0 || m.GetCommit() != 0 || m.GetVote() != 0 {
		promise = promise || m.GetTerm() != c.hard.GetTerm() || m.GetVote() != c.hard.GetVote()
		c.hard, c.commitUnwritten = &raftpb.HardState{Term: m.Term, Vote: m.Vote, Commit: m.Commit}, true
	}
	if w.Snapshot != nil { // the leader must receive the response only when this member can become the leader
		c.installing, c.held, w.Responses = true, w.Responses, nil
	}
	if c.commitUnwritten && promise {
		w.Hard, c.commitUnwritten = c.hard, false
	}
	return w
}

func (w *Write) isEmpty() bool {
	return w.Snapshot == nil && w.Hard == nil && len(w.Entries)+len(w.Responses) == 0
}

// send sends a message. An append without entries only informs a follower of the commit
// index, or asks for the end of its log. send delays it until the next append to that
// member, which does both, or until the next tick.
func (c *Core) send(m *raftpb.Message) {
	if m.GetType() == raftpb.MsgApp {
		if len(m.GetEntries()) == 0 {
			c.delayed[m.GetTo()] = m
			return
		}
		delete(c.delayed, m.GetTo())
	}
	c.work.Send = append(c.work.Send, m)
}

// delayed contains, by member, an append without entries that is sent no later than the
// next tick.
type delayed map[uint64]*raftpb.Message

// take returns and removes the delayed messages. It drops messages of an earlier term.
func (d delayed) take(term uint64) (messages []*raftpb.Message) {
	for _, id := range slices.Sorted(maps.Keys(d)) {
		if m := d[id]; m.GetTerm() == term {
			messages = append(messages, m)
		}
	}
	clear(d)
	return messages
}

// observe detects changes of the term, the leader and the epoch.
func (c *Core) observe() {
	s := c.node.BasicStatus()
	if s.GetTerm() != c.lead.Term {
		c.noopsApplied, c.noopsNeeded, c.resigned, c.confAsk, c.lacks = 0, 1, false, false, 0
		c.lead.Epoch = 0
		c.lease.reset()
	}
	c.lead.Term, c.lead.Leader, c.state = s.GetTerm(), s.Lead, s.RaftState
	switch {
	case c.state != raft.StateLeader:
		c.lead.Epoch = 0
		c.lease.reset()
	case c.lead.Epoch == 0 && !c.resigned && c.noopsApplied >= c.noopsNeeded:
		c.epochs++
		c.lead.Epoch = c.epochs
		c.proposals.start()
	}
	if c.lead.Epoch != 0 {
		c.proposals.commit(s.GetCommit())
	}
}
