// Package raftlog keeps what a member of a cluster must not forget: the entries of Raft's
// log, its vote, the members, how often it was started, and what it knows of the others. It
// is a [wal.Log] with records of its own, and the Storage of a [raft.RawNode].
//
//	log, err := raftlog.Open(vfs.OS, dir, raftlog.Options{})
//	node, err := raft.NewRawNode(&raft.Config{Storage: log, …})
//	…
//	err = log.Append(hardState, entries) // of a MsgStorageAppend
//	err = log.Sync()                     // now its responses may be delivered
//	…
//	err = log.Cut(at)                    // entries up to here are in the journal, durably
//
// # Records
//
// The payload of a record of the wal is a kind and its fields. Numbers are varints.
//
//	entry  := 1 term index type data          data: to the end of the payload
//	hard   := 2 term vote commit
//	state  := 8 json                          the rest of [State]: the members, where the log was
//	                                          cut, the starts, the verdict and the peers
//
// A record of index i overrides all entries of index i and above that came before it:
// that is how a conflicting suffix is replaced. Nothing is cut in the middle of a file.
// Of the other kinds the last record counts. A kind that is not known is an error: a
// program that is older than the directory must not go on without what it cannot read.
//
// # What is in memory
//
// The newest entries: at least those of the segment that is written, and about
// [Options].Recent bytes. [Log.Entries] reads older entries from their sealed segments. It
// starts at the nearest remembered offset; there is one for about 256 KiB. It recognizes an
// overridden entry by its term: in Raft's log an index and a term name one entry.
//
// # Cutting
//
// [Log.Cut] says up to which entry the log is not needed any more. Then the oldest
// segments go, as far as they hold nothing else. Before that Cut writes the hard state and
// the other state to the newest segment, because the last records of those kinds may be in
// a segment that goes: a vote that is forgotten is a vote given twice. Room for these
// records is set aside, since only a cut frees a disk that the log has filled.
// [Log.Restore] cuts the log where a snapshot ends. One record has the members and where
// the log begins.
//
// # Failing disks
//
// After a failed write or sync nothing is promised until [Log.Recover] has written all
// records since the last sync to a new segment. No response of a MsgStorageAppend may be
// delivered before the Sync that covers it has succeeded, if necessary after Recover.
//
// # Goroutines
//
// One goroutine, the owner, appends, syncs, cuts and recovers. Any goroutine can call the
// methods of [raft.Storage] at the same time. They never wait for the owner's writes and
// syncs. Only [Log.Entries] uses the disk, to read entries of sealed segments, and holds no
// lock while it reads.
//
// # Not here
//
// When to sync, what is committed, what entries mean.
package raftlog
