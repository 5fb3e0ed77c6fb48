// Package cluster is a member of a cluster: several servers keep one queue, which so
// survives the loss of a machine. To the broker a member is a [broker.Log] whose changes
// are durable when a majority of the members has them.
//
//	cluster.Init(vfs.OS, dir, self)                  // once, for the first member
//	m, err := cluster.Open(cluster.Options{Dir: dir, Self: self, Transport: t})
//	b := m.Broker()                                  // its turns decide while this member is the active leader
//	m.Step(message)                                  // what the transport hears of other members
//
// # A turn at the leader
//
// The leader executes a turn before the members agree on it. Append notes the changes in
// the journal as in flight, and makes an entry of them. Sync proposes the entries of all
// turns that have been flushed, in one message to each other member. It waits until a
// majority has the entries on disk; then the replies go. A later turn appends the changes
// to the journal. The journal is not synced for that: until it is, Raft's log has the
// entry.
//
// While too many changes are flushed and not committed, the event loops wait before their
// turns ([broker.Broker.AwaitRoom]). A turn itself never waits for other members.
//
// A turn without changes needs no entry. Its replies go at once if the lease rules out
// another leader (package core); otherwise Sync asks the majority.
//
// # Followers
//
// A follower restores committed entries into its engine and appends them to its journal,
// so many in a turn. Nothing comes due at a follower, as the end of a delay is no change
// in the log. When a follower is elected it has all jobs, and none is reserved.
//
// # Phases
//
// A member is in one phase (phase.go). The engine decides while the member is leading, in
// a leadership epoch of package core. When the epoch ends, the engine may have made
// changes that are never committed. So all turns fail with [broker.ErrDeposed], the server
// closes its clients ([Options].Deposed), and another engine is made: the journal has what
// was applied, and the log has the rest. If all changes of the old engine are committed,
// it stays.
//
// # Two logs
//
// DIR has the journal, as that of a single server, and DIR/cluster/log has Raft's log. The
// journal says up to which entry it has all changes. A start applies the entries after
// that one again. Raft's log is cut at the last entry that the journal has durably and
// that all members have. It keeps at most [Options].Keep bytes for members that are away,
// and four times as much for members that catch up.
//
// If the leader has cut the next entry of a member, Raft offers the member a snapshot. It
// is a copy of the leader's journal. The member fetches it beside its own journal
// (snapshot.go), and installs it in the place of that (install.go). The same happens to a
// member that joins a cluster which was made of a single server's journal.
//
// # Goroutines
//
// The raft loop owns the core. It takes events from a mailbox (events.go). It never waits
// for the network, nor for a write or a sync. It reads the disk in one case: when a
// follower needs entries that Raft's log no longer has in memory, one read of about 1 MiB
// for a message. The append goroutine owns Raft's log: it takes all pending work, writes
// it, syncs once, and notifies the loop. A third goroutine makes segments of the log ahead
// of time. A fourth asks the broker for a turn when a follower has entries to apply, and
// when an epoch begins or ends. Close ends all of them.
//
// # Owners
//
// Each owner is a type, and the receiver of a method says where the method runs: raftLoop
// and peerTable in the raft loop, turn within turns, disk in the append goroutine, and
// lifecycle and Member in any goroutine. lifecycle.mu guards what the goroutines tell each
// other: the phase, the leadership, and the entries to be applied. No goroutine waits for
// a disk, a turn or the network while it holds lifecycle.mu.
//
// # Not here
//
// Connections between members, joining, and clients at a follower.
//
// Start reading at phase.go and member.go, then turn.go, proposals.go and leadership.go.
package cluster
