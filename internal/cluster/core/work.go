package core

import (
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// Work is what is to be done.
type Work struct {
	Send  []*raftpb.Message // to other members; may be lost
	Write []Write           // to the log, in this order, after those of earlier Works
	Apply []Apply           // in this order, after those of earlier Works
	Roles *Roles            // to be recorded, if not nil; the latest counts
}

// A Write is what is to be appended to the log. If it has responses, they are for Done as
// soon as all of it is durable. Without, it need not be synced. With a snapshot, the log
// begins after that one, and when that is durable the snapshot is to be installed: see
// [Core.Installed].
type Write struct {
	Snapshot  *raftpb.Snapshot  // comes first; or nil
	Hard      *raftpb.HardState // or nil
	Entries   []*raftpb.Entry
	Responses []*raftpb.Message
}

// An Apply is entries that all members apply, in this order. The responses are for Done,
// those of an earlier Apply first. Entries without data, and those that are not
// [raftpb.EntryNormal], mean something to the core only.
type Apply struct {
	Entries   []*raftpb.Entry
	Responses []*raftpb.Message
}

// Roles are those of the members after the change of configuration at Index.
type Roles struct {
	Conf    *raftpb.ConfState
	Index   uint64
	Context []byte // of the change or, if that has none, of the one before in the same Work
}

// Idle reports whether there is nothing to do.
func (w *Work) Idle() bool {
	return len(w.Send)+len(w.Write)+len(w.Apply) == 0 && w.Roles == nil
}

// Work returns what is to be done since the last call.
func (c *Core) Work() Work {
	c.gather()
	work := c.work
	c.work = Work{}
	return work
}

// gather takes what Raft wants done.
func (c *Core) gather() {
	for c.node.HasReady() {
		ready := c.node.Ready()
		for _, m := range ready.Messages {
			switch m.GetTo() {
			case raft.LocalAppendThread:
				if c.epoch != 0 {
					c.own.write(m.GetEntries())
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

// own is what was proposed in an epoch. Invariant:
//
//  4. written has the indexes of the entries that Raft has given out to be written and
//     that are not committed, in order. Before them, committed entries of the epoch are
//     committed.
type own struct {
	written   []uint64
	committed uint64
}

// begin forgets the epoch before.
func (o *own) begin() { o.written, o.committed = o.written[:0], 0 }

// write notes the entries that Raft gives out to be written.
func (o *own) write(entries []*raftpb.Entry) {
	for _, e := range entries {
		if e.GetType() == raftpb.EntryNormal && len(e.GetData()) > 0 {
			o.written = append(o.written, e.GetIndex())
		}
	}
}

// commit notes that entries are committed up to an index.
func (o *own) commit(index uint64) {
	for len(o.written) > 0 && o.written[0] <= index {
		o.written = o.written[1:]
		o.committed++
	}
}

// writeOf returns what is to be written. What is committed is no promise: it is written
// only beside something else.
func (c *Core) writeOf(m *raftpb.Message) Write {
	w := Write{Snapshot: m.GetSnapshot(), Entries: m.GetEntries(), Responses: m.GetResponses()}
	promise := len(w.Entries) > 0 || w.Snapshot != nil
	if m.GetTerm() != 0 || m.GetCommit() != 0 || m.GetVote() != 0 {
		promise = promise || m.GetTerm() != c.hard.GetTerm() || m.GetVote() != c.hard.GetVote()
		c.hard, c.commitUnwritten = &raftpb.HardState{Term: m.Term, Vote: m.Vote, Commit: m.Commit}, true
	}
	if w.Snapshot != nil { // the leader hears of it when the leadership can be transferred to this member
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

// send hands over a message. An append without entries tells a follower what is
// committed, or asks it where its log ends. It waits for the next append to that member,
// which does both, or for the next tick.
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

// delayed has the append without entries that is sent to a member at the next tick at the
// latest.
type delayed map[uint64]*raftpb.Message

// take returns what has waited, unless it is of a term that is over.
func (d delayed) take(term uint64) (messages []*raftpb.Message) {
	for _, id := range slices.Sorted(maps.Keys(d)) {
		if m := d[id]; m.GetTerm() == term {
			messages = append(messages, m)
		}
	}
	clear(d)
	return messages
}

// observe notices what has changed: a term, a leader, an epoch.
func (c *Core) observe() {
	s := c.node.BasicStatus()
	if s.GetTerm() != c.term {
		c.appliedEmpty, c.neededEmpty, c.resigned, c.confAsk, c.lacks = 0, 1, false, false, 0
		c.epoch = 0
		c.lease.begin()
	}
	c.term, c.state, c.lead = s.GetTerm(), s.RaftState, s.Lead
	switch {
	case c.state != raft.StateLeader:
		c.epoch = 0
		c.lease.begin()
	case c.epoch == 0 && !c.resigned && c.appliedEmpty >= c.neededEmpty:
		c.epochs++
		c.epoch = c.epochs
		c.own.begin()
	}
	if c.epoch != 0 {
		c.own.commit(s.GetCommit())
	}
}
