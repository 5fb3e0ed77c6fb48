// Package cluster is a member of a cluster: several servers that keep one queue, so that
// it survives the loss of a machine. To the broker a member is a [broker.Log] whose
// changes are durable when a majority has them.
//
//	cluster.Init(vfs.OS, dir, self)                  // once, for the first member
//	m, err := cluster.Open(cluster.Options{Dir: dir, Self: self, Transport: t})
//	b := m.Broker()                                  // its turns decide while this member is the active leader
//	m.Step(message)                                  // what the transport hears of other members
//
// # A turn at the leader
//
// A turn is executed before anybody agrees. Append gives its changes to the journal,
// which notes that they are under way, and makes an entry of them. Sync proposes the
// entries of all turns that have flushed theirs, in one message to each of the others,
// and waits until a majority has them on disk; then the replies go. A later turn appends
// the entry's changes to the journal, which is not synced for that: as long as it is not,
// the entry is in Raft's log.
//
// A turn without changes needs no entry. Its replies go at once if the lease says that
// nobody else can lead (package core); otherwise Sync asks the majority.
//
// # Followers
//
// A follower restores what is committed into its engine, and appends it to its journal, a
// bounded part with each turn. Nothing comes due there: that a delay has ended is no
// change of the log. When it is elected it has all jobs, and none is reserved.
//
// # Phases
//
// A member is in one phase (phase.go): it loads, follows, is activated, leads, drains, or
// installs what another one sends, until it has failed. The engine decides while the
// member is leading, in a leadership epoch of package core. When that ends, the engine
// may have made changes that were never committed. So all turns fail with
// [broker.ErrDeposed], the server closes its clients ([Options].Deposed), and the engine
// is given up and made again: the journal has what was applied, the log the rest. If all
// that it has done is committed, the same engine goes on.
//
// # Two logs
//
// DIR has the journal, as a single server has one, DIR/cluster/log Raft's log. The
// journal says up to which entry it has all changes. A start applies what comes after it
// again. Raft's log is cut at what the journal has durably, and every other member has,
// but not more than [Options].Keep bytes stay for those that are away, and four times as
// much for those that catch up.
//
// A member whose next entry the leader has cut is offered a snapshot by Raft: a copy of
// the leader's journal, which it fetches beside its own (snapshot.go) and which takes the
// place of that (install.go). So is one that joins a cluster which was made of a single
// server's journal.
//
// # Goroutines
//
// The raft loop owns the core; it is told by events in a mailbox (events.go), and touches
// neither disk nor network. The append goroutine owns Raft's log: it takes all that
// waits, writes once, syncs once, and tells the loop. Another one makes segments of the
// log ahead of time. Turns run where the broker runs them; a goroutine asks for one when
// something was committed at a follower, or an epoch has begun or ended. Close ends all
// of them.
//
// # Owners
//
// Each owner is a type, and the receiver of a method says where it runs: raftLoop and
// peerTable in the raft loop, turn within turns, disk in the append goroutine, lifecycle
// anywhere, with its mutex, and Member in the goroutine of whoever calls. lifecycle.mu is
// over what they tell each other: the phase, the leadership, and what is to be applied.
// Nobody waits for a disk, a turn or the network while holding it.
//
// # Not here
//
// Connections between members, who may join, what clients at a follower see.
//
// Start reading at phase.go and member.go, then turn.go, proposals.go and leadership.go.
package cluster
