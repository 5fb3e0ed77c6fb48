// Package wal is an append-only log of records in segment files. It knows
// nothing of jobs: a record is some bytes that come back, in order and whole,
// when the log is opened again, or not at all.
//
//	log, err := wal.Open(vfs.OS, dir, wal.Options{})
//	report, err := wal.Replay(log, decode, apply) // what is there; then the log can be written
//	…
//	pos, err := log.Append(head, body) // in memory
//	err = log.Flush()                  // one write
//	err = log.Sync()                   // one fdatasync; now it is durable
//	…
//	err = log.Close()
//
// # Files
//
// A log is a directory of files beanpole.<sequence>.wal, the sequence being 16
// hexadecimal digits, and the file lock, on which it holds an fcntl lock while
// it is open. beanstalkd locks the same file, so the two exclude each other;
// their names of files do not collide. Other files are left alone.
//
// A segment is a header, a link and records. All numbers are little-endian;
// checksums are CRC-32C (Castagnoli).
//
//	segment := header link record* [closing]
//
//	header:  0  magic "beanpole"
//	         8  version         u32   1
//	        12  header size     u32   48
//	        16  log             u64   random, the same in all segments of a log
//	        24  sequence        u64   that of the file's name
//	        32  created         i64   nanoseconds since 1970, or 0
//	        40  reserved        u32   0
//	        44  checksum        u32   of the 44 bytes before
//
//	record:  0  checksum        u32   of all below but the padding; see below
//	         4  length          u32   of the payload; bit 31: the record is internal
//	         8  synced          u32   everything in this segment before this offset was known to be
//	                                  durable when the record was written
//	        12  payload         length bytes, then zeros up to a multiple of 8
//
//	link    := internal record, payload: kind (1)  7 zeros  log  previous sequence u64  previous end u64
//	filler  := internal record, payload: kind (2), then anything
//	closing := internal record, payload: kind (3); the last of a log that was closed
//
// A record is valid iff its length is 1 .. [MaxPayload], it ends within the
// segment, its synced is not larger than its own offset, and its checksum is
// right. The checksum is continued from that of log and sequence (16 bytes),
// exclusive-or the record's offset. So bytes from another log, another segment
// or another place in the same segment are not valid.
//
// A segment is complete up to its end, which the link of the next one states.
// So the chain of links from the last segment back to the oldest is the log.
// Sequences that a link jumps over are void: abandoned attempts to heal (see
// below) and files that a crash left. The oldest segment's link points to one
// that was removed, or to 0.
//
// # Life of a segment
//
// A file is made ahead of time as a spare: space reserved on the disk, header
// written, file and directory synced ([Log.Prepare] does so, and then fills the
// file with zeros, which makes each later sync about a quarter faster on ext4).
// When a record does not fit into the current segment, that one is cut to its
// length, synced and sealed, and the next spare starts with a link. Nothing is
// written to a segment before its predecessor is durable. [Log.Close] syncs the
// current segment, appends the closing record, and seals it too. A file is
// written only by the process that made it: an opened log starts a new segment
// with its first record. A record that is larger than a segment gets one to
// itself.
//
// # Torn or damaged
//
// Until the next segment's link declares otherwise, all that follows the first
// invalid record of the last segment is either the torn tail of a write that
// was under way when the power failed, and nobody was promised any of it; or it
// is damage to what was durable once. A later valid record whose synced mark is
// past the invalid one proves damage. Then, and for any invalid record before a
// declared end, a missing segment, or a damaged header, [Open] or [Replay]
// stops with a [*CorruptError] and changes nothing; [Repair] exists. A torn
// tail is cut and reported.
//
// The closing record is written when all before it is durable, and its mark says
// so: after an orderly end no damage before it looks like a torn write. What
// cannot be told apart: damage to the records of the very last sync before a
// crash, and damage from somewhere to the end of the file that takes the closing
// record with it. Logs from before there was one are read as those of a crash.
//
// # Failing disks
//
// After a failed write or sync the log is in a failed state, and nothing that
// the kernel holds of the current segment is trusted again. All records since
// the last successful sync are still in memory; [Log.Recover] writes them to a
// new segment whose link declares the old one to end at its last synced offset,
// so that whatever of them did reach the old file does not count. Should the
// process die before the new segment is durable, the old tail is still there
// and is replayed as far as it is whole. So every record comes back at most
// once, in order.
//
// # Space
//
// [Log.Reserve] promises space for a record before there is need to write it:
// the space in the current segment and the spares never falls below what is
// reserved, counting what is lost at the ends of segments because records are
// not split. So a full disk shows in Reserve, or in an Append that was not
// reserved, and there it does no harm. space.go has the arithmetic.
//
// # Goroutines
//
// One goroutine, the owner, calls the methods of [Log]. Two things may run
// beside it, in one goroutine each or the same: [Target.Sync], so that records
// can be appended and flushed while older ones become durable, and
// [Log.Prepare]. The writing side starts no goroutines; Replay starts some and
// ends them before it returns.
//
// # Not here
//
// What records mean, which segments are still needed, when to sync, when to try
// to heal, compression, encryption, and reading a log that is being written by
// another process.
//
// Start reading at format.go, then append.go; open.go and replay.go are the way
// back.
package wal
