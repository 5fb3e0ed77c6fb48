// Package core is how one member of a cluster agrees with the others: a state machine
// around a [raft.RawNode], without clock, disk, network, goroutine or lock. Its methods
// are told what happened, and when; Work says what is to be done for it.
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
// A leader is active when it has applied every entry of the leaders before it: then, and
// only then, its engine may decide. An epoch begins, with a number that does not come
// again in the life of a process. What was decided in an epoch is proposed with its
// number, and is refused when that epoch is over, although the member may lead again by
// then: its engine does not have what it decided before. An epoch ends with the
// leadership, with the term, and with the first proposal that Raft refuses, because a
// later one could be accepted and the log would have a hole.
//
// # Lease
//
// A reply that changes nothing may go only while no other member can be active. At each
// tick a leader asks a majority whether it still leads. Each member that says so takes
// part in no election for the length of an election timeout from then. So for
// leaseTicks from the moment of the question, less a tenth for clocks that
// differ in speed, there is no other leader. Three things would break that, and are kept
// away here:
//
//   - A member that was just started does not know of the leader it confirmed: it takes no part in
//     elections for its first electionTicks.
//   - A transfer of the leadership overrides the wait: from its beginning there is no lease in
//     that term.
//   - After a pause of the process the moments of the past say nothing of its ticks: moments are
//     those of a clock that goes on meanwhile (CLOCK_BOOTTIME), and the lease is looked at in
//     moments, not in ticks.
//
// Without a lease, a reply waits for the answer to a question that was asked after its
// turn: [Core.Ask] and [Core.Confirmed].
//
// # Votes
//
// A vote is a promise not to lose what was acknowledged. What is cut off from the end of
// a log when it is opened was in no sync and was not acknowledged, so the member takes
// part in elections as any other. If a disk has lied about a sync, the members to which
// this one has acknowledged what it lacks notice it: package cluster compares that when
// they connect.
//
// # Members
//
// The roles of the members are those of the last change of configuration that was
// applied. Work.Roles says when they are to be recorded; the index that is recorded with
// them says which changes of the log they include, so that none is applied twice.
//
// # Snapshots
//
// Raft offers a snapshot (MsgSnap) to a member whose next entry the leader has cut. The
// snapshot of the message ends with what the leader has applied. The core takes the
// message as a question: does its log have that entry, and what does it know to be
// committed? If the leader's log goes back as far as the answer, no snapshot is needed.
// Otherwise [Core.LacksSnapshot] is true. The member fetches a snapshot from the leader,
// which may end later, and takes part meanwhile. Then [Core.Restore] gives Raft a message
// of that snapshot. Until [Core.Installed], Raft does not hear that anything is on the
// disk, so it gives out nothing to apply and does not stand. Nor does the leader hear of
// the snapshot, as it might transfer the leadership to this member. Promises to other
// members, such as votes, go out.
//
// # Not here
//
// What entries and snapshots contain, the addresses of members, and how snapshots are sent.
//
// Start reading at testdata/activation.txt, a transcript, then core.go, lease.go and
// votes.go.
package core
