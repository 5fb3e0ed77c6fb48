package core

import (
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// Snapshot is what the journal has now. It is copied when the other member fetches it,
// and has more by then.
func (s storage) Snapshot() (*raftpb.Snapshot, error) {
	at := s.c.applied
	if at.Term == 0 {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{ConfState: s.c.conf, Index: &at.Index, Term: &at.Term}}, nil
}

// offered takes a snapshot that the leader offers. What Raft is given in its place makes
// it answer how far the log goes: if it has the entry of the snapshot, or what the leader
// has not cut, the snapshot is not needed.
func (c *Core) offered(m *raftpb.Message) error {
	at := m.GetSnapshot().GetMetadata()
	err := c.Step(probe(m, at.GetIndex(), at.GetTerm()))
	if err != nil || m.GetTerm() != c.term {
		return err
	}
	c.lacks = at.GetIndex()
	if c.LacksSnapshot() {
		err = c.Step(probe(m, 0, 0)) // the answer is what is known to be agreed on
	}
	return err
}

// probe returns a message of the same leader that asks whether the log has an entry.
func probe(m *raftpb.Message, index, term uint64) *raftpb.Message {
	return &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), From: m.From, To: m.To, Term: m.Term, Index: &index, LogTerm: &term, Commit: &index,
	}
}

// LacksSnapshot reports whether the leader has offered a snapshot and the log does not
// have its entry. The member is to fetch it from that leader, unless that one's log has
// what is lacking, and then to call Restore.
func (c *Core) LacksSnapshot() bool { return c.lacks > c.node.BasicStatus().GetCommit() }

// Restore makes the log begin after a snapshot that the member has beside its own queue.
// It returns false, and changes nothing, if the member does not need the snapshot any more
// or knows no leader. Otherwise the next Work has a Write with the snapshot. Until
// Installed nothing is applied and the member does not stand for election; it votes, and
// takes entries.
func (c *Core) Restore(s *raftpb.Snapshot) bool {
	c.gather()
	if c.lead == 0 {
		return false
	}
	before, lead, term := len(c.work.Write), c.lead, c.term // copies: Raft's answer has them
	c.node.Step(&raftpb.Message{
		Type: raftpb.MsgSnap.Enum(), From: &lead, To: &c.opt.ID, Term: &term, Snapshot: s,
	}) // Raft says what it thinks of it by what is to be written
	c.gather()
	if !slices.ContainsFunc(c.work.Write[before:], func(w Write) bool { return w.Snapshot != nil }) {
		return false
	}
	at := s.GetMetadata()
	c.conf, c.confDone, c.last, c.work.Roles = at.GetConfState(), at.GetIndex(), at.GetIndex(), nil
	return true
}

// Installed says that the member has the queue of the snapshot that was restored.
func (c *Core) Installed() {
	held := c.held
	c.installing, c.held = false, nil
	c.Done(held)
}

// endSnapshots tells a leader's Raft of each member that has installed the snapshot which
// it was offered. Raft sees that by itself, unless the log was cut beyond that snapshot
// meanwhile. Then the member needs another one.
func (c *Core) endSnapshots() {
	c.node.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		if p.State == tracker.StateSnapshot && p.Match >= p.PendingSnapshot {
			c.node.ReportSnapshot(id, raft.SnapshotFinish)
		}
	})
}

// SnapshotFailed says that another member does not fetch the snapshot that it was
// offered: it is to be offered one again, if it still needs one.
func (c *Core) SnapshotFailed(id uint64) { c.node.ReportSnapshot(id, raft.SnapshotFailure) }
