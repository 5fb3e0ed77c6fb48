// Package binlog reads and writes the log beanstalkd files, its binlog, so that jobs
// can move from a beanstalkd to beanpole, and back.
//
//	names, err := binlog.Files(vfs.OS, dir)                         // are there any files?
//	report, err := binlog.Read(vfs.OS, dir, opt, func(c engine.Change) error {
//		eng.Restore(c)
//		return nil
//	})
//	…
//	summary, err := binlog.Write(vfs.OS, other, opt, eng)
//
// The caller holds the lock of the directory (vfs.FS.Lock of its file "lock", which
// beanstalkd also locks) while it reads or writes here. The package starts no goroutines.
//
// # Format
//
// A log is a directory of files binlog.N. N increases from 1, and beanstalkd removes only
// the oldest files. A later record of a job replaces an earlier one. There are no
// checksums. Numbers are little-endian; times are nanoseconds since 1970. This is version
// 7, since beanstalkd 1.5.
//
//	file   := version (i32)  record*  zeros
//
//	record := n (i32)  tube name (n bytes)  job  body
//
//	job:   0  id           u64
//	       8  pri          u32
//	      12  padding      4 bytes
//	      16  delay        i64
//	      24  ttr          i64
//	      32  body size    i32   with the CR LF that ends the body
//	      36  padding      4 bytes
//	      40  created      i64
//	      48  deadline     i64   time when a delayed job becomes ready; otherwise stale
//	      56  reserves, timeouts, releases, buries, kicks   u32 each
//	      76  state        u8    0 deleted, 1 ready, 2 reserved, 3 buried, 4 delayed
//	      77  padding      3 bytes
//
// A full record (n is 1 to 200) contains the body; beanstalkd writes one for each put and
// each copy of its compaction. A short record (n is 0) has neither tube nor body: bury,
// kick, release with a delay, delete. If a short record belongs to an unknown job, the
// full record was removed with its file: the job is deleted, or a copy follows. Such a
// record has no effect. A record with id 0 is part of the zeros at the end of a file.
//
// Only the newest file can lack a header, if its creation was interrupted. Any file can
// have a header and no record: a start leaves the file that the previous process
// preallocated, and large jobs skip files.
//
// This is the layout of 64-bit little-endian machines. beanstalkd writes its structs as
// they are in memory: on 32-bit x86 they have 72 bytes, and on big-endian machines the
// other byte order. Read reports such files as damaged or of an unknown version, and does
// not convert them.
//
// # Guarantees of Read
//
//   - A record counts only if its lengths, tube name, state, times and id are possible and
//     it ends within its file. At the first invalid one, Read skips the rest of the file,
//     because the start of the next record is unknown. It reads later files.
//   - A record with an id above 2^53 does not count: an error set such an id, and all later
//     ids would follow it.
//   - A body that does not end with CR LF did not come from a client: a page of it never
//     reached the disk. Read drops the job.
//   - Zeros end a file if only zeros follow.
//   - The [Report] lists everything else that Read does not understand, with file, offset
//     and reason.
//   - Read needs memory for the largest file. No length in a file makes it allocate more.
//
// # Differences from beanstalkd's own replay
//
// Read accepts a job of any size. (beanstalkd skips the rest of a file at a body larger
// than -z minus 2.) Buries are not counted again. The highest id is the highest in any
// record that counts, so that ids do not repeat. Buried jobs are in the order of their
// ids, as in beanstalkd unless its compaction has copied them.
//
// beanstalkd does not log reservations, touches, timeouts, releases without delay (and
// their new priority), and pauses, so these are lost.
//
// Start reading at format.go, then read.go.
package binlog
