// Package cluster implements a member of a cluster: several servers store one queue,
// which survives the loss of a machine. For the broker, a member is a [broker.Log] whose
// changes are durable when a majority of the members has them.
//
//	cluster.Init(vfs.OS, dir, self)                  // once, for the first member
//	m, err := cluster.Open(cluster.Options{Dir: dir, Self: self, Transport: t})
//	b := m.Broker()                                  // turns make changes while this member is the active leader
//	m.Step(message)                                  // for each message from other members
//
// # A turn on the leader
//
// The leader executes a turn before the members agree on it. Append records the changes
// as in flight in the journal, and encodes them as an entry. Sync proposes the entries of
// all flushed turns, in one message to each other member. It waits until a majority has
// the entries on disk; then the replies are sent. A later turn appends the changes to the
// journal. This needs no sync of the journal: until the next sync, Raft's log has the
// entry.
//
// While too many changes are flushed and not committed, the event loops wait before their
// turns ([broker.Broker.AwaitRoom]). A turn itself never waits for other members.
//
// A turn without changes needs no entry. Its replies are sent at once if the lease rules
// out another leader (package core); otherwise, Sync asks the majority.
//
// # Followers
//
// A follower applies committed entries to its engine and appends them to its journal, a
// limited number in a turn. No job becomes due on a follower, because the end of a delay
// is not a change in the log. A follower that is elected has all jobs, and none of them
// is reserved.
//
// # Phases
//
// A member is in one phase (phase.go). The engine can make changes while the member is
// leading, in a leadership epoch of package core. When the epoch ends, the engine might
// contain changes that are never committed. Therefore all turns fail with
// [broker.ErrDeposed], the server suspends or disconnects its clients
// ([Options].Deposed), and the member creates a new engine from the journal, which has
// the applied changes, and the log, which has the rest. If all changes of the old engine
// are committed, the member keeps it.
//
// # Two logs
//
// DIR contains the journal, as for a single server, and DIR/cluster/log contains Raft's
// log. The journal records the last entry whose changes it contains. A start applies the
// later entries again. Raft's log is cut at the last entry that is durable in the journal
// and that all members have. It keeps at most [Options].Keep bytes for absent members,
// and four times as much for members that are catching up.
//
// If the leader has cut the next entry of a member, Raft offers the member a snapshot, a
// copy of the leader's journal. The member stores the snapshot next to its own journal
// (snapshot.go), and then replaces its journal with it (install.go). A new member of a
// cluster that was created from a single server's journal does the same.
//
// # Goroutines
//
// The raft loop owns the core. It makes the calls that others post (events.go). It never
// waits for the network, a write or a sync. It reads the disk only if a follower needs
// entries that Raft's log no longer has in memory; it then reads about 1 MiB for a
// message. The append goroutine owns Raft's log: it takes all pending work, writes it,
// syncs once, and notifies the loop. A third goroutine creates segments of the log in
// advance. A fourth requests a turn from the broker when a follower has entries to apply,
// and when an epoch starts or ends. Close ends all of them.
//
// # Owners
//
// Each owner is a type, and the receiver of a method shows where the method runs:
// raftLoop and peerTable in the raft loop, turn within turns, disk in the append
// goroutine, and lifecycle and Member in any goroutine. lifecycle.mu guards the state
// that the goroutines share: the phase, the leadership, and the entries to be applied. No
// goroutine waits for a disk, a turn or the network while it holds lifecycle.mu.
//
// Start reading at phase.go and member.go, then turn.go, proposals.go and leadership.go.
package cluster
