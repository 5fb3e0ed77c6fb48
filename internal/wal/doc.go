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
//	segment := header link record* [closing next]
//
//	header:  0  magic "beanpole"
//	         8  version         u32   3
//	        12  header size     u32   48
//	        16  log             u64   random, the same in all segments of a log
//	        24  sequence        u64   that of the file's name
//	        32  created         i64   nanoseconds since 1970, or 0
//	        40  size            u32   of the file, until the segment is closed
//	        44  checksum        u32   of the 44 bytes before
//
//	record:  0  checksum        u32   of the 12 bytes below; see there
//	         4  length          u32   of the payload; bit 31: the record is internal; bit 30: it is
//	                                  only a fragment of one
//	         8  synced          u32   everything in this segment before this offset was known to be
//	                                  durable when the record was written
//	        12  checksum        u32   of the payload
//	        16  payload         length bytes, then zeros up to a multiple of 8
//
//	link    := internal record, payload: kind (1)  7 zeros  log  previous sequence u64  previous end u64
//	                                     oldest sequence u64
//	closing := internal record, payload: kind (3); the last of a segment that is complete
//	oldest  := internal record, payload: kind (4)  7 zeros  sequence u64
//	next    := internal record, payload: kind (5)  7 zeros  sequence u64; or zeros
//
//	fragment's payload:  segment u32  offset u32  from u32  total u32  then a part of the
//	                     record's: of the record that begins in that segment at that offset,
//	                     the bytes after from, of total
//
// A record is valid iff its length is 1 .. [MaxPayload], it ends within the
// segment, its synced is not larger than its own offset, and its checksums are
// right. That of the header is continued from that of log and sequence (16
// bytes), exclusive-or the record's offset. So bytes from another log, another
// segment or another place in the same segment are not valid. A payload cannot look
// like a record, because no client knows the number of the log: the first 16 bytes show
// that there is none.
//
// A segment is complete up to its end, which the link of the next one states. The chain of
// links from the last segment back to the oldest is the log. Sequences that a link jumps
// over are void: attempts to heal that were given up (see below) and files that a crash
// left. The oldest segment's link points to one that was removed, or to 0.
//
// # What must be there
//
// The start notices a lost segment. Each link names the oldest segment that was needed
// when it was written, and so does a record when an older one is removed. The file of that
// is removed when the record is durable, or by a later start. When the link of a segment
// is durable, [Log.Prepare] writes its name after the closing record of the one before,
// which then cannot be the last. A file that is shorter than it was made must have a
// closing record. Not noticed is the loss of the only segment, and of the last one before
// its name is written.
//
// While the log is open, each sync and the last write to a segment also check that the
// file still has a name and its length. A [LostError] puts the log into the failed state.
//
// # Life of a segment
//
// [Log.Prepare] preallocates a file: it reserves space on the disk, writes the header and
// syncs file and directory. Then it fills the file with zeros, which makes each later sync
// about a quarter faster on ext4. A start uses the preallocated files of the process
// before.
//
// A record that does not fit into the current segment is split: its fragments fill the
// segment and go on in the next ones. The place of the record is that of the first. A full
// segment gets its closing record, is synced, cut to its length and sealed, and the next
// one starts with a link. Nothing is written to a segment before its predecessor is
// durable. [Log.Close], or else the next start, seals the current segment, too. An opened
// log starts a new segment with its first record.
//
// Fragments whose record is not whole say nothing: its rest was never written, or its
// beginning was in a segment that was removed. They name their record, so nothing else is
// taken for its rest.
//
// # Torn or damaged
//
// An invalid record in the last segment is either the torn end of a write that was under
// way when the power failed, and nothing from there on was promised; or it is damage to
// what was durable. A later valid record whose synced offset is past the invalid one
// proves damage. Then, and for an invalid record in an older segment, a missing segment or
// a damaged header, [Open] or [Replay] stops with a [*CorruptError] and changes nothing;
// [Salvage] makes a new log of what is whole. A torn end is cut off and reported, with the
// number of whole records in it, which were never synced.
//
// At an orderly end the closing record is written when all before it is durable, and its
// offset says so. So no damage before it, and no loss of the end of the file, looks like a
// torn write. Damage to the records of the last sync before a crash does.
//
// # Failing disks
//
// After a failed write or sync the log is in a failed state, and trusts nothing that the
// kernel holds of the current segment. All records since the last successful sync are in
// memory. [Log.Recover] writes them to a new segment, whose link says that the old one
// ends at its last synced offset, so that no record counts twice. Of a record that begins
// in a sealed segment it writes the rest. If the process ends before there is a new
// segment, the next start replays the whole records of the old file. So every record comes
// back at most once, in order.
//
// # Space
//
// [Log.Reserve] promises space for a record before it is written. The space in the current
// segment and the preallocated ones never falls below what is reserved, so a full disk
// shows in Reserve, or in an Append that was not reserved, where it does no harm. space.go
// has the arithmetic.
//
// # Goroutines
//
// One goroutine, the owner, calls the methods of [Log]. Other goroutines may call
// [Target.Sync], so that the owner can append and flush while older records become
// durable, and one of them [Log.Prepare]. A [Reader] reads sealed segments in any goroutine
// and never waits for the owner, as sealed segments do not change. Replay starts goroutines
// and ends them before it returns; nothing else starts any.
//
// Start reading at format.go, then append.go; open.go and replay.go are the way back.
package wal
