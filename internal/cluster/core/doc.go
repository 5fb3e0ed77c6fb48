// Package core runs Raft for one member of a cluster. It is a state machine around a
// [raft.RawNode], without a clock, disk, network, goroutine or lock. Its methods receive
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
// active leader's engine can make changes. When a leader becomes active, an epoch starts;
// its number is unique in the process. Changes are proposed with the number of their
// epoch. The core refuses them after the epoch, even if the member is the leader again,
// because the engine has lost its earlier changes. An epoch ends with the leadership,
// with the term, and with the first proposal that Raft refuses. If Raft accepted a later
// proposal, the log would have a hole.
//
// # Lease
//
// A leader can send the reply to a command without changes only while no other member can
// be active. At each tick, it asks a majority whether it is still the leader. Each member
// that confirms this takes part in no election for an election timeout. Therefore, no
// other leader exists for leaseTicks after the question, less a tenth for clocks of
// different speeds. Three events would break this, and the core handles them:
//
//   - A member that has just started has forgotten the leader it confirmed. It takes no
//     part in elections for its first electionTicks.
//   - A transfer of the leadership overrides the wait. From its start, the term has no lease.
//   - A paused process counts no ticks. Leases therefore use times of a clock that
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
// leader's log covers the missing entries, no snapshot is needed. Otherwise,
// [Core.LacksSnapshot] returns true. The member fetches a snapshot from the leader, which
// can end with a later entry, and continues to take part. Then [Core.Restore] passes a
// message with that snapshot to Raft. Until [Core.Installed], the core withholds all
// responses of the disk from Raft. Therefore, Raft returns nothing to apply and does not
// run for election. The leader gets no acknowledgment either, because it might transfer
// the leadership to this member. The core still sends promises to other members, such as
// votes.
//
// Start reading at testdata/activation.txt, a transcript, then core.go, lease.go and
// votes.go.
package core
