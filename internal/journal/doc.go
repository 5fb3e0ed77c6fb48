// Package journal stores the engine's Changes on a local disk: it is the broker's Log,
// and makes the queue survive the process.
//
//	j := journal.New(journal.Options{Epoch: start.UnixNano()})
//	eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
//	report, err := j.Open(vfs.OS, dir, eng)      // eng has all jobs now
//	b := broker.New(eng, broker.Options{Log: j, Now: now})
//
// Package record encodes a Change as a record; package wal keeps records in segment files
// and does not interpret them. doc/journal.md describes the journal for operators.
//
// # Promises
//
// With Options.Sync 0, all records that were flushed before a call of Sync are on disk
// when the call returns. With a positive value they are on disk after that time plus the
// time of a sync. With a negative value the operating system decides. In each case a
// killed process loses no flushed record, unless the disk fails (doc/journal.md,
// "Failures of the disk").
//
// # Space
//
// The journal admits a change only if there is space for it. A put also reserves space for
// the deletion of the job, so that a full disk never refuses a delete. The journal
// reserves the space of two segments for cleaning, and some for new states, so that a
// worker that fails can bury its job (space.go). The disk should have space for four
// segments.
//
// # Failure
//
// After a failed write or sync, commands whose changes were not durable get an error, and
// further changes are refused before they are executed. Housekeep tries to heal at once
// and then every second: it writes all changes that were not durable to a new segment.
// Therefore memory and log agree once the log has healed.
//
// # Cleaning
//
// The engine stores the segment in which each job's whole record starts. When the log is
// too large, each turn writes some live jobs of the oldest segment again, at the end of
// the log. Once they are durable, the segment is removed (clean.go). Its records of
// states and deletions are no longer needed: the whole record of such a job is in the
// same or an older segment, or was written again later.
//
// # In a cluster
//
// A member's journal contains only committed changes. The leader's engine is ahead of it.
// Therefore, the journal receives its changes twice: [Journal.Stage] accepts them when
// the engine has executed them, and [Journal.AppendCommitted] appends them when the
// cluster has committed their entry. In between they are in flight (inflight.go):
// cleaning, rewriting and healing take the segment and the state of such a job from
// inFlight, not from the engine. On the other members, AppendCommitted also restores the
// changes in the engine.
//
// Applied records state up to which entry of the cluster's log the journal contains the
// changes (committed.go). No client waits for a sync of the journal, because the
// cluster's log contains all changes that are not durable here. A deposed leader closes
// the journal, because its engine contains uncommitted changes, and opens it again with a
// new engine.
//
// # Invariants
//
// J1. live is the sum of weight over all jobs (index.go). J2. jobsIn counts, for each
// segment, the jobs whose whole record it contains; no such segment is removed. J3. For
// each job, space for its deletion is reserved, as far as there was space; the only other
// reservations are the spares and states of space.go. J4. Each pause, and the settings of
// each pattern, are in persistentState with a segment that exists. J5. inFlight contains
// exactly the jobs with changes in flight, with the segment of the whole record, which
// jobsIn counts. J6. The last Applied record comes after all changes of its entry and of
// earlier ones, and is in no removed segment. [Journal.Check] tests all of them except
// J6.
//
// # Goroutines
//
// All methods except Sync are called within turns. Sync runs concurrently, in one
// goroutine at a time. The journal starts at most two goroutines: one syncs, unless
// Options.Sync is 0, and one prepares the next segment. Housekeep requests calls until
// they have ended. Close waits for them.
//
// Start reading at journal.go.
package journal
