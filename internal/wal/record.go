package wal

import (
	"encoding/binary"
	"hash/crc32"
)

// A layout is the form of records in a version of the format. New segments have the
// layout current; segments of an older one are read, and repaired, as they are.
type layout struct {
	version      uint32
	recordHeader int64 // bytes before the payload
	linkPayload  int
}

// In version 1 one checksum covered a whole record, so all bytes had to be read to find
// out that there was none. A client that chose the bytes of large jobs could make that
// take very long. From version 2 on the header has a checksum of its own.
var (
	layout1 = &layout{version: 1, recordHeader: 12, linkPayload: 32}
	layout2 = &layout{version: 2, recordHeader: 16, linkPayload: 40}
	current = layout2
	layouts = []*layout{layout2, layout1} // newest first
)

func layoutOf(version uint32) *layout {
	for _, y := range layouts {
		if y.version == version {
			return y
		}
	}
	return nil
}

func (y *layout) firstRecord() int64 { return headerSize + y.cost(y.linkPayload) }

// closes reports whether each complete segment of this layout ends with a closing
// record and the name of the next segment.
func (y *layout) closes() bool { return y.version > 1 }

func (y *layout) cost(n int) int64 {
	return (y.recordHeader + int64(n) + alignment - 1) &^ (alignment - 1)
}

// Cost returns how many bytes of a segment a record with a payload of n bytes
// takes. This is the unit of [Log.Reserve].
func Cost(n int) int64 { return current.cost(n) }

// appendRecord appends the record that will be at off in its segment, with the
// concatenation of parts as its payload. n is their total length, with
// internalBit if the record is internal.
func (y *layout) appendRecord(dst []byte, seed uint32, off, synced int64, n uint32, parts ...[]byte) []byte {
	start := len(dst)
	var head [16]byte
	dst = append(dst, head[:y.recordHeader]...)
	for _, p := range parts {
		dst = append(dst, p...)
	}
	y.putHeader(dst[start:], seed, off, synced, n, crc32.Checksum(dst[start+int(y.recordHeader):], castagnoli))
	for (len(dst)-start)%alignment != 0 {
		dst = append(dst, 0)
	}
	return dst
}

// putHeader writes the header of a record to the beginning of rec. payload is
// the checksum of its payload, which must be there already in version 1.
func (y *layout) putHeader(rec []byte, seed uint32, off, synced int64, n, payload uint32) {
	binary.LittleEndian.PutUint32(rec[4:], n)
	binary.LittleEndian.PutUint32(rec[8:], uint32(synced))
	if y.version == 1 {
		binary.LittleEndian.PutUint32(rec, crc32.Update(seed^uint32(off), castagnoli, rec[4:y.recordHeader+int64(n&^internalBit)]))
		return
	}
	binary.LittleEndian.PutUint32(rec[12:], payload)
	binary.LittleEndian.PutUint32(rec, crc32.Update(seed^uint32(off), castagnoli, rec[4:16]))
}

// recordLength returns the payload's length in the record at the start of b,
// which has the header.
func recordLength(b []byte) (n int, internal bool) {
	n32 := binary.LittleEndian.Uint32(b[4:])
	return int(n32 &^ internalBit), n32&internalBit != 0
}

// recordSynced returns the synced mark of the record at the start of b.
func recordSynced(b []byte) int64 { return int64(binary.LittleEndian.Uint32(b[8:])) }

// Reasons why there is no valid record at an offset.
const (
	endOfRecords = "no record"
	badLength    = "the length of a record is impossible"
	badMark      = "the synced mark of a record is impossible"
	badChecksum  = "the checksum of a record is wrong"
)

// frame returns the size of the record at the start of b. It looks at the length only.
// left is the number of bytes from there to the end of the segment; b has at least
// min(left, recordHeader) bytes. If reason is not empty there is no record.
func (y *layout) frame(b []byte, left int64) (size int64, reason string) {
	if left < y.recordHeader {
		return 0, endOfRecords
	}
	n, _ := recordLength(b)
	switch {
	case n == 0:
		return 0, endOfRecords
	case n > MaxPayload || y.cost(n) > left:
		return 0, badLength
	}
	return y.cost(n), ""
}

// checkHeader returns why the header at the start of b, at off in its segment, is not
// valid. In version 1 the checksum of the payload is needed for most of that.
func (y *layout) checkHeader(b []byte, seed uint32, off int64) (reason string) {
	switch {
	case recordSynced(b) > off:
		return badMark
	case y.version > 1 && crc32.Update(seed^uint32(off), castagnoli, b[4:16]) != binary.LittleEndian.Uint32(b):
		return badChecksum
	}
	return ""
}

// A checksum is computed over the payload of a record piece by piece.
type checksum struct{ sum, want uint32 }

// payloadChecksum begins that of the record whose header is at the start of b.
func (y *layout) payloadChecksum(b []byte, seed uint32, off int64) checksum {
	if y.version == 1 {
		return checksum{crc32.Update(seed^uint32(off), castagnoli, b[4:y.recordHeader]), binary.LittleEndian.Uint32(b)}
	}
	return checksum{0, binary.LittleEndian.Uint32(b[12:])}
}

func (c *checksum) add(p []byte) { c.sum = crc32.Update(c.sum, castagnoli, p) }

func (c *checksum) right() bool { return c.sum == c.want }

// check returns why the record at the start of b, at off in its segment, is not
// valid. b has the whole record.
func (y *layout) check(b []byte, seed uint32, off int64) (reason string) {
	if reason := y.checkHeader(b, seed, off); reason != "" {
		return reason
	}
	sum := y.payloadChecksum(b, seed, off)
	if sum.add(y.payload(b)); !sum.right() {
		return badChecksum
	}
	return ""
}

// payload returns the payload of the record at the start of b.
func (y *layout) payload(b []byte) []byte {
	n, _ := recordLength(b)
	return b[y.recordHeader : y.recordHeader+int64(n)]
}
