// Package wal implements an append-only log of records in segment files. A record is a
// sequence of bytes that this package does not interpret. When the log is opened again,
// each record is complete and in its place, or absent.
//
//	log, err := wal.Open(vfs.OS, dir, wal.Options{})
//	report, err := wal.Replay(log, decode, apply) // read all records; then the log can be written
//	…
//	pos, err := log.Append(head, body) // in memory
//	err = log.Flush()                  // one write
//	err = log.Sync()                   // one fdatasync; now the record is durable
//	…
//	err = log.Close()
//
// # Files
//
// A log is a directory of files beanpole.<sequence>.wal, with the sequence in 16
// hexadecimal digits, and the file lock. The log holds an fcntl lock on that file while
// it is open. beanstalkd locks the same file, so the two exclude each other; their file
// names do not collide. The log ignores other files.
//
// A segment is a header, a link and records. All numbers are little-endian; checksums are
// CRC-32C (Castagnoli).
//
//	segment := header link record* [closing]
//
//	header:  0  magic "beanpole"
//	         8  version         u32   4
//	        12  header size     u32   48
//	        16  log             u64   random, the same in all segments of a log
//	        24  sequence        u64   as in the file's name
//	        32  created         i64   nanoseconds since 1970, or 0
//	        40  size            u32   of the file, until the segment is closed
//	        44  checksum        u32   of the 44 bytes before
//
//	record:  0  checksum        u32   of the 12 bytes below, see there
//	         4  length          u32   of the payload; bit 31: the record is internal; bit 30: it is
//	                                  a fragment
//	         8  synced          u32   everything in this segment before this offset was known to be
//	                                  durable when the record was written
//	        12  checksum        u32   of the payload
//	        16  payload         length bytes, then zeros up to a multiple of 8
//
//	link    := internal record, payload: kind (1)  7 zeros  log  previous sequence u64  previous end u64
//	                                     oldest sequence u64
//	closing := internal record, payload: kind (3); the last record of a complete segment
//	oldest  := internal record, payload: kind (4)  7 zeros  sequence u64
//
//	payload of a fragment:  segment u32  offset u32  from u32  total u32  part of the payload
//	                        of the record that starts in that segment at that offset: the
//	                        bytes after from, of total
//
// A record is valid if its length is 1 to [MaxPayload], it ends within the segment,
// synced is at most its own offset, and its checksums are right. The header's checksum
// continues the checksum of log and sequence (16 bytes), exclusive-or the record's
// offset. Therefore bytes from another log, another segment or another offset are not
// valid. A payload cannot imitate a record, because clients do not know the log's number.
// The first 16 bytes prove the absence of a record.
//
// A segment is complete up to its end, which the link of the next segment contains. The
// chain of links from the last segment back to the oldest is the log. The sequences that
// a link skips are failed attempts to heal (see below) and files that a crash left. The
// oldest segment's link points to a removed segment, or to 0.
//
// # Missing segments
//
// A start detects a missing segment unless it is the newest. Each link contains the
// oldest segment that was needed when the link was written. So does a record when an
// older segment is removed; the log, or a later start, removes the file once that record
// is durable. A file that is shorter than its header states must have a closing record.
//
// While the log is open, each sync and the first write to a segment also check that the
// file still has its name and its length. [ErrLost] puts the log into the failed state.
//
// # Life of a segment
//
// [Log.Prepare] preallocates a file: it reserves space on the disk, writes the header and
// syncs file and directory. Then it fills the file with zeros, which makes each later
// sync about a quarter faster on ext4. A start uses the preallocated files of the
// previous process.
//
// A record that does not fit into the current segment is split: its fragments fill the
// segment and continue in the next ones. The record's position is the position of its
// first fragment. A full segment gets its closing record, is synced, cut to its length
// and sealed; the next one starts with a link. Nothing is written to a segment before the
// previous one is durable. [Log.Close], or the next start, also seals the current
// segment. An opened log starts a new segment with its first record.
//
// A reader ignores fragments of an incomplete record: the rest was never written, or the
// start was in a segment that was removed. Each fragment identifies its record, so
// fragments of different records are never joined.
//
// # Torn or damaged
//
// An invalid record in the last segment is either the torn end of a write that a power
// failure interrupted, or damage to durable data. A later valid record with a synced
// offset past the invalid one proves damage. In that case, and for an invalid record in
// an older segment, a missing segment or a damaged header, [Open] or [Replay] returns a
// [*CorruptError] and changes nothing. [Salvage] writes the complete records to a new
// log. Replay cuts a torn end and reports it, with the number of complete records in it,
// which were never synced.
//
// An orderly stop writes the closing record once everything before it is durable, and its
// synced offset proves that. So neither damage before it nor the loss of the end of the
// file looks like a torn write. Damage to the records of the last sync before a crash
// does look like one.
//
// # Failing disks
//
// After a failed write or sync, the log is in the failed state, and does not trust any
// part of the current segment that only the kernel's cache contains. All records since
// the last successful sync are in memory. [Log.Recover] writes them to a new segment. Its
// link states that the old segment ends at its last synced offset, so that no record
// counts twice. If a record starts in a sealed segment, Recover writes the rest. If the
// process ends before there is a new segment, the next start replays the complete records
// of the old file. Therefore each record is read at most once, in order.
//
// # Space
//
// [Log.Reserve] promises space for a record before it is written. The space in the
// current segment and the preallocated ones is never smaller than the reservations. So a
// full disk makes only Reserve fail, or an Append without a reservation, where the
// failure does no harm. space.go has the arithmetic.
//
// # Goroutines
//
// One goroutine, the owner, calls the methods of [Log]. Other goroutines can call
// [Target.Sync], so that the owner can append and flush while older records become
// durable, and one of them can call [Log.Prepare]. A [Reader] reads sealed segments in
// any goroutine and never waits for the owner, as sealed segments do not change. Replay
// starts goroutines and waits for them; no other function starts a goroutine.
//
// Start reading at format.go, then append.go; open.go and replay.go read the log again.
package wal
