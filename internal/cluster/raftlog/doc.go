// Package raftlog durably stores the state of a member of a cluster: the entries of
// Raft's log, the vote, the members, the number of starts, and the state of the peers. It
// is a [wal.Log] with its own records, and the Storage of a [raft.RawNode].
//
//	log, err := raftlog.Open(vfs.OS, dir, raftlog.Options{})
//	node, err := raft.NewRawNode(&raft.Config{Storage: log, …})
//	…
//	err = log.Append(hardState, entries) // of a MsgStorageAppend
//	err = log.Sync()                     // now its responses can be delivered
//	…
//	err = log.Cut(at)                    // the journal durably contains these entries
//
// # Records
//
// The payload of a record of the wal is a kind and its fields. Numbers are varints.
//
//	entry  := 1 term index type data          data: to the end of the payload
//	hard   := 2 term vote commit
//	state  := 8 json                          the rest of [State]: the members, where the log was
//	                                          cut, the starts, the fatal reason and the peers
//
// A record of index i overrides all earlier entries of index i and above. This replaces a
// conflicting suffix without truncating a file in the middle. Of each other kind, the
// last record applies. An unknown kind is an error, because an older program must not
// ignore a record that it cannot read.
//
// # Memory
//
// The newest entries are in memory: at least the entries of the current segment, and
// about [Options].Recent bytes. [Log.Entries] reads older entries from their sealed
// segments. It starts at the nearest stored offset; one is stored for about every 256
// KiB. It recognizes an overridden entry by its term, because in Raft's log, an index and
// a term identify a single entry.
//
// # Cutting
//
// [Log.Cut] takes the last entry that is no longer needed, and removes the oldest
// segments that contain only unneeded entries. Before that, Cut writes the hard state and
// the other state to the newest segment, because the last records of those kinds can be
// in a removed segment: a member that loses its vote can vote twice. Space for these
// records is reserved, because only a cut frees space when the log has filled the disk.
// [Log.Restore] cuts the log at the end of a snapshot. A single record contains both the
// members and the start of the log.
//
// # Failing disks
//
// After a failed write or sync, no record is durable until [Log.Recover] has written all
// records since the last sync to a new segment. A response of a MsgStorageAppend must not
// be delivered before the Sync that covers it has succeeded, if necessary after Recover.
//
// # Goroutines
//
// One goroutine, the owner, appends, syncs, cuts and recovers. Any goroutine can call the
// methods of [raft.Storage] at the same time. They never wait for the owner's writes and
// syncs. Only [Log.Entries] uses the disk, to read entries of sealed segments, and holds
// no lock while it reads.
package raftlog
