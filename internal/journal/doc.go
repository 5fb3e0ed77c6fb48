// Package journal makes the Changes of the engine outlive the process: it is the
// broker's Log on a local disk.
//
//	j := journal.New(journal.Options{Epoch: start.UnixNano()})
//	eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
//	report, err := j.Open(vfs.OS, dir, eng)      // eng has all jobs now
//	b := broker.New(eng, broker.Options{Log: j, Now: now})
//
// Package record draws the bytes of a record; package wal keeps records in segment
// files and knows nothing of what is in them. doc/journal.md is the same for
// people who operate a server.
//
// # What is promised
//
// With Options.Sync 0, everything that was flushed before a call of Sync is on disk when
// that call returns. With a positive one it is on disk after that time, plus that of a
// sync. With a negative one the operating system decides. In each case a killed process
// loses nothing that was flushed, unless the disk fails (doc/journal.md, "Failures of the
// disk").
//
// # Space
//
// A change is admitted only if there is room for it. Room for the deletion of a job is
// set aside when it is put, so that a full disk never refuses a delete, and the space of
// two segments for cleaning, so that it never stops that either, and some for new states,
// so that a worker that fails can bury its job (space.go). The disk should have room for
// four segments.
//
// # Failure
//
// After a failed write or sync, the commands whose changes were not durable are answered
// with an error, and further changes are refused before they are made. Housekeep tries to
// heal at once and then every second: it writes all changes that were not durable to a new
// segment. So memory and log agree when the log has healed.
//
// # Cleaning
//
// Each job's whole record begins in one segment, which the engine notes beside the job.
// When the log is too large, the live jobs of the oldest segment are written again at the
// end, a few with each turn. When that is durable the segment is removed (clean.go). Its
// records of states and deletions are not needed any more: the whole record of such a job
// is in the same or an older segment, or was written again since.
//
// # In a cluster
//
// The journal of a member has only what the members have agreed on. At the leader the
// engine is ahead of that. So its changes come twice: [Journal.Executed] takes them when
// the engine has made them, and [Journal.AppendCommitted] appends them when the cluster
// has committed their entry. In between they are in flight (inflight.go): cleaning,
// rewriting and healing take the place of such a job's record, and its state, from there,
// and not from the engine. At the other members AppendCommitted also restores the changes
// in the engine.
//
// A record says up to which entry of the cluster's log the facts are in the journal
// (committed.go). Nobody waits for a sync of it: the log has what is not durable here. A
// leader that was deposed closes the journal, whose engine knows too much, and opens it
// again with another one.
//
// # Invariants
//
// J1. live is the sum of weight over all jobs (index.go). J2. jobsIn counts, for each
// segment, the jobs whose whole record is there; none is in a removed segment. J3. For
// each job, room for its deletion is reserved, as far as there was room; besides, only the
// standbys and states of space.go are reserved. J4. Each pause, and what was set for each
// pattern, is in standing, with a segment that exists, and in its queue, which is in the
// order of segments. J5. A job with facts in flight, and no other, is in inFlight, which
// has the segment of its whole record; that is what jobsIn counts. J6. The last record of
// an Applied comes after all facts of that entry and of those before, and is in no segment
// that is removed.
// [Journal.Check] tests them, but for J6.
//
// # Goroutines
//
// All methods but Sync are called within turns. Sync runs beside them, in one goroutine at
// a time. The journal itself starts at most two: one syncs, unless Options.Sync is 0, and
// one prepares the next segment. Housekeep asks to be called until they have ended. Close
// waits for them.
//
// Start reading at journal.go.
package journal
