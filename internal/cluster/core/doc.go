// Package core runs Raft for one member of a cluster: a state machine around a
// [raft.RawNode], without clock, disk, network, goroutine or lock. Its methods receive
// events and their times; Work returns the resulting work.
//
//	c, err := core.New(log, core.Options{ID: 3, Applied: applied, …})
//	c.Tick(now)            // about every Options.Tick
//	c.Step(message)        // from another member
//	c.Propose(epoch, entry)
//	for work := c.Work(); …
//		send work.Send
//		append work.Write; when it is durable: c.Done(write.Responses)
//		apply work.Apply; then: c.Done(apply.Responses)
//
// # Leadership epochs
//
// A leader becomes active when it has applied every entry of earlier leaders. Only an
// active leader's engine may decide. An epoch then starts; its number is unique in the
// process. Decisions of an epoch are proposed with its number. The core refuses them
// after the epoch, even if the member leads again: the engine has lost its earlier
// decisions. An epoch ends with the leadership, with the term, and with the first
// proposal that Raft refuses. If Raft accepted a later proposal, the log would have a
// hole.
//
// # Lease
//
// A leader can send a reply that changes nothing only while no other member can be
// active. At each tick it asks a majority whether it still leads. Each member that
// confirms this takes part in no election for an election timeout. Therefore no other
// leader exists for leaseTicks after the question, less a tenth for clocks of different
// speeds. Three events would break this, and the core handles them:
//
//   - A member that has just started has forgotten the leader it confirmed. It takes no
//     part in elections for its first electionTicks.
//   - A transfer of the leadership overrides the wait. From its start, the term has no lease.
//   - A paused process counts no ticks. Leases therefore use moments of a clock that
//     continues during the pause (CLOCK_BOOTTIME), not ticks.
//
// Without a lease, a reply waits for the answer to a question that was asked after its
// turn: [Core.Ask] and [Core.Confirmed].
//
// # Votes
//
// A voter must not lose acknowledged entries. Data cut off the end of a log when it is
// opened was never synced or acknowledged, so the member takes part in elections as
// usual. If a disk has lost synced entries, the members that hold its acknowledgements
// detect this: package cluster compares them when members connect.
//
// # Members
//
// The last applied change of configuration defines the members' roles. Work.Roles
// requests their recording. The index recorded with them names the last change that they
// include, so that no change is applied twice.
//
// # Snapshots
//
// Raft offers a snapshot (MsgSnap) to a member whose next entry the leader has cut. The
// snapshot ends with the leader's last applied entry. The core treats the message as a
// question: does its log have that entry, and which entries are committed? If the
// leader's log covers the answer, no snapshot is needed. Otherwise [Core.LacksSnapshot]
// is true. The member fetches a snapshot from the leader, which can end later, and
// continues to take part. Then [Core.Restore] gives Raft a message of that snapshot.
// Until [Core.Installed], the core withholds all responses of the disk from Raft.
// Therefore Raft returns nothing to apply and does not stand for election. The leader is
// not notified either, because it might transfer the leadership to this member. The core
// still sends promises to other members, such as votes.
//
// # Not here
//
// The contents of entries and snapshots, the addresses of members, and the transfer of
// snapshots.
//
// Start reading at testdata/activation.txt, a transcript, then core.go, lease.go and
// votes.go.
package core
