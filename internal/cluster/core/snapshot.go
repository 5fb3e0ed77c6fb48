package core

import (
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// Snapshot returns the current position of the journal. The journal is copied when the
// other member fetches it, so the copy can contain later entries.
func (s storage) Snapshot() (*raftpb.Snapshot, error) {
	at := s.c.applied
	if at.Term == 0 {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{ConfState: s.c.conf, Index: &at.Index, Term: &at.Term}}, nil
}

// offered handles a snapshot that the leader offers. It passes a probe to Raft instead,
// so that Raft answers with the end of its log. The snapshot is not needed if the log has
// the snapshot's entry, or if the leader's log covers the missing entries.
func (c *Core) offered(m *raftpb.Message) error {
	at := m.GetSnapshot().GetMetadata()
	err := c.Step(probe(m, at.GetIndex(), at.GetTerm()))
	if err != nil || m.GetTerm() != c.lead.Term {
		return err
	}
	c.lacks = at.GetIndex()
	if c.LacksSnapshot() {
		err = c.Step(probe(m, 0, 0)) // Raft answers with its commit index
	}
	return err
}

// probe returns a message from the same leader that asks whether the log has an entry.
func probe(m *raftpb.Message, index, term uint64) *raftpb.Message {
	return &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), From: m.From, To: m.To, Term: m.Term, Index: &index, LogTerm: &term, Commit: &index,
	}
}

// LacksSnapshot reports whether the leader has offered a snapshot whose entry is not in
// the log. The member must then fetch a snapshot from the leader and call Restore, unless
// the leader's log still supplies the missing entries.
func (c *Core) LacksSnapshot() bool { return c.lacks > c.node.BasicStatus().GetCommit() }

// Restore makes the log start after a snapshot that the member has stored next to its
// journal. It returns false and changes nothing if the member no longer needs the
// snapshot or has no leader. Otherwise the next Work contains a Write with the snapshot.
// Until Installed, the core applies nothing and does not run for election, but it votes
// and accepts entries.
func (c *Core) Restore(s *raftpb.Snapshot) bool {
	c.gather()
	if c.lead.Leader == 0 {
		return false
	}
	before, lead := len(c.work.Write), c.lead // the calls below change both
	c.node.Step(&raftpb.Message{
		Type: raftpb.MsgSnap.Enum(), From: &lead.Leader, To: &c.opt.ID, Term: &lead.Term, Snapshot: s,
	}) // the messages and writes reveal Raft's decision
	c.gather()
	if !slices.ContainsFunc(c.work.Write[before:], func(w Write) bool { return w.Snapshot != nil }) {
		return false
	}
	at := s.GetMetadata()
	c.conf, c.confDone, c.last, c.work.Roles = at.GetConfState(), at.GetIndex(), at.GetIndex(), nil
	return true
}

// Installed must be called when the engine contains the restored snapshot.
func (c *Core) Installed() {
	held := c.held
	c.installing, c.held = false, nil
	c.Done(held)
}

// endSnapshots reports to a leader's Raft each member that has installed the snapshot
// offered to it. Raft detects this itself unless the log was cut beyond that snapshot. In
// that case, the member needs another snapshot.
func (c *Core) endSnapshots() {
	c.node.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		if p.State == tracker.StateSnapshot && p.Match >= p.PendingSnapshot {
			c.node.ReportSnapshot(id, raft.SnapshotFinish)
		}
	})
}

// SnapshotFailed must be called when another member does not fetch the snapshot offered
// to it. Raft then offers a snapshot again, if the member still needs one.
func (c *Core) SnapshotFailed(id uint64) { c.node.ReportSnapshot(id, raft.SnapshotFailure) }
