// Package binlog reads and writes the log files of beanstalkd, its binlog, so that jobs
// can be taken over from a beanstalkd, and given back to one.
//
//	names, err := binlog.Files(vfs.OS, dir)                         // is there anything?
//	report, err := binlog.Read(vfs.OS, dir, opt, func(c engine.Change) error {
//		eng.Restore(c)
//		return nil
//	})
//	…
//	summary, err := binlog.Write(vfs.OS, other, opt, eng)
//
// The caller holds the lock of the directory (vfs.FS.Lock of its file "lock",
// which beanstalkd locks too) while it reads or writes here. The package starts no
// goroutines: reading takes less than half of the time that the engine needs to restore
// the jobs (BenchmarkRead).
//
// # Format
//
// A log is a directory of files binlog.N. N rises from 1, and only the oldest files are
// removed. A later record of a job replaces an earlier one. There are no checksums.
// Numbers are little-endian, times are wall clock since 1970, in nanoseconds. This is
// version 7, since beanstalkd 1.5.
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
//	      48  deadline     i64   Delayed: when the job becomes ready. Else stale
//	      56  reserves, timeouts, releases, buries, kicks   u32 each
//	      76  state        u8    0 deleted, 1 ready, 2 reserved, 3 buried, 4 delayed
//	      77  padding      3 bytes
//
// A full record (n is 1 to 200) has the body; one is written for each put and
// each copy that compaction makes. A short record (n is 0) has neither tube nor
// body: bury, kick, release with a delay, delete. If a short record is of an unknown
// job, the full record was removed with its file: the job is deleted, or a copy comes
// later. Such a record does nothing. A record with id 0 is part of the zeros that end a
// file.
//
// Only the newest file, if its making was interrupted, may have no header. Any file may
// have a header and no record: a start leaves the file that the process before has made
// ahead of time, and large jobs pass over files.
//
// This is the layout of 64-bit little-endian machines. beanstalkd writes its
// structs as they are in memory: on 32-bit x86 they have 72 bytes, and on big-endian
// machines the other byte order. Such files are reported as damaged, or of an
// unknown version; they are not converted.
//
// # What Read is sure of
//
//   - A record counts only if its lengths, tube name, state, times and id are
//     possible and it lies within its file. The first one that is not valid ends
//     the reading of that file, because it is not known where the next one begins.
//     Later files are read.
//   - No server gives ids above engine.MaxSafeID. A record of a job that is not there does not
//     count if its id is higher, and no job has one above engine.MaxID: a fault has set such
//     an id, and all later ones would follow it.
//   - A body that does not end with CR LF is not what a client sent: a page of it
//     never reached the disk. Its job is dropped.
//   - Zeros end a file, if only zeros follow.
//   - Everything else that was not understood is in the [Report], with its file,
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
// and the highest id is the highest in any record that counts, so that ids do not repeat.
//
// beanstalkd does not log reservations, touches, expired TTRs, releases without delay
// (and their new priority), and pauses, so these are lost.
//
// Start reading at format.go, then read.go.
package binlog
