// Package history stores time series of the server and of its tubes, and the list of
// changes. It keeps points of a minute for a day, points of an hour for 31 days and
// changes for 31 days, within a limit in bytes. Above the limit, it drops the oldest
// minutes first.
//
// A [Store] keeps the whole history in memory, in the format of its files: a point takes
// about 15 bytes. [Store.Run] reads the directory and writes additions to it in the
// background, so that no method waits for the disk. If the disk fails, the store
// continues in memory.
//
// A file is called KIND.TIME, with the time of its first block in ms. It is append-only,
// and no process appends to the file of an earlier process:
//
//	header  "beanpole history 1\n"
//	block   0xB5 0x1E | length of the payload, 4 bytes | CRC-32C, 4 bytes | payload
//
// Fixed numbers are little endian, others are varints. The checksum covers length and
// payload. A payload is the time in ms and, for changes, a text. For points the rest is:
//
//	number of new tubes, and for each: length, name
//	for each tube with values other than 0, ascending: number minus the last one |
//	  length, 1 byte | bit set of series | their values; durations are logarithms
//
// The reader ignores a damaged block and the rest of its file. The package loses up to
// half a minute of changes to a power failure, because it syncs a file only when the file
// is complete.
//
// Start reading at store.go.
package history
