// Package binlog reads and writes the log files of beanstalkd, which calls them
// its binlog: the way in for those who come from there, and the way back.
//
//	names, err := binlog.Files(vfs.OS, dir)                         // is there anything?
//	report, err := binlog.Read(vfs.OS, dir, opt, func(c engine.Change) error {
//		eng.Restore(c)
//		return nil
//	})
//	…
//	summary, err := binlog.Write(vfs.OS, other, opt, changes)       // changes: eng.Snapshots and a LastID
//
// The caller holds the lock of the directory (vfs.FS.Lock of its file "lock",
// which beanstalkd locks too) while it reads or writes here. Nothing here
// starts a goroutine: BenchmarkRead shows that the restoring, which is one
// goroutine's, takes more than twice the time of the reading.
//
// # Format
//
// A log is a directory of files binlog.N. N rises from 1 and files are removed
// from the front only. What a later record says of a job overrules what an
// earlier one said. There are no checksums. Numbers are little-endian, times are
// wall clock since 1970: nanoseconds in version 7, microseconds in version 5.
//
//	file   := version (i32)  record*  zeros
//
//	record := n (i32; u64 in version 5)  tube name (n bytes)  job  body
//
//	job:   0  id           u64
//	       8  pri          u32
//	      12  padding      4 bytes
//	      16  delay        i64
//	      24  ttr          i64
//	      32  body size    i32   with the CR LF that ends the body
//	      36  padding      4 bytes
//	      40  created      i64
//	      48  deadline     i64   Delayed: when the job becomes ready. Else stale
//	      56  reserves, timeouts, releases, buries, kicks   u32 each
//	      76  state        u8    0 deleted, 1 ready, 2 reserved, 3 buried, 4 delayed
//	      77  padding      3 bytes; version 5 has none
//
// A full record (n is 1 to 200) has the body; one is written for each put and
// each copy that compaction makes. A short record (n is 0) has neither tube nor
// body: bury, kick, release with a delay, delete. A short record of an unknown
// job belongs to one whose full record was removed, so that it is gone or comes
// later; it does nothing. A record with id 0 is the zero fill that ends a file.
//
// This is the layout of 64-bit little-endian machines. beanstalkd writes its
// structs as they lie in memory: 32-bit x86 has 72 bytes there and big-endian
// machines turn everything round. Such files are reported as damaged, or of an
// unknown version; they are not converted.
//
// # What Read is sure of
//
//   - A record is handed on only if its lengths, tube name, state, times and id
//     are possible and it lies within its file. The first that is not ends the
//     reading of that file, for nothing tells where the next one begins. Later
//     files are read.
//   - A body that does not end with CR LF is not what a client sent. It is a
//     page that never reached the disk, and its job is dropped.
//   - Zeros end a file silently, if nothing but zeros follows.
//   - All else that was not understood stands in the [Report], with its file,
//     offset and reason.
//   - Memory is a buffer of the size of the largest record, 1 MiB at least, and
//     some bytes for each tube and each buried job. No length in a file makes it
//     allocate more than the file has.
//
// # What is better than beanstalkd's own replay
//
// A job is read whatever its size (beanstalkd skips the rest of a file at a body
// larger than -z minus 2). Buried jobs keep the order in which they were buried
// (there it becomes that of putting), their buries are not counted once more,
// and the highest id is the highest in any record, so that ids do not repeat.
//
// What beanstalkd does not log it cannot tell us: reservations, touches, expired
// TTRs, releases without delay (and their new priority), and pauses.
//
// Start reading at format.go, then read.go.
package binlog
