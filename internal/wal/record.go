package wal

import (
	"encoding/binary"
	"hash/crc32"
)

// A record has a header of 16 bytes with its own checksum, then the payload, padded to a
// multiple of 8. An invalid header alone proves that there is no record, so that clients
// cannot slow down a search for records with large, specially crafted jobs.
const recordHeader = 16

// Cost returns the number of bytes that a record with a payload of n bytes occupies in a
// segment. This is the unit of [Log.Reserve].
func Cost(n int) int64 {
	return (recordHeader + int64(n) + alignment - 1) &^ (alignment - 1)
}

// appendRecord appends a record that will be at offset off in its segment. Its payload is
// the concatenation of parts. n is their total length, with internalBit if the record is
// internal, and fragmentBit if it is a fragment.
func appendRecord(dst []byte, seed uint32, off, synced int64, n uint32, parts ...[]byte) []byte {
	start := len(dst)
	dst = append(dst, zeros[:recordHeader]...)
	for _, p := range parts {
		dst = append(dst, p...)
	}
	rec := dst[start:]
	binary.LittleEndian.PutUint32(rec[4:], n)
	binary.LittleEndian.PutUint32(rec[8:], uint32(synced))
	binary.LittleEndian.PutUint32(rec[12:], crc32.Checksum(rec[recordHeader:], castagnoli))
	binary.LittleEndian.PutUint32(rec, crc32.Update(seed^uint32(off), castagnoli, rec[4:16]))
	return append(dst, zeros[:-(len(dst)-start)&(alignment-1)]...)
}

// recordLength returns the payload's length in the record at the start of b, which
// contains at least the header.
func recordLength(b []byte) (n int, internal bool) {
	n32 := binary.LittleEndian.Uint32(b[4:])
	return int(n32 &^ (internalBit | fragmentBit)), n32&internalBit != 0
}

// isFragment reports whether the record at the start of b is a fragment.
func isFragment(b []byte) bool { return binary.LittleEndian.Uint32(b[4:])&fragmentBit != 0 }

// recordSynced returns the synced offset of the record at the start of b.
func recordSynced(b []byte) int64 { return int64(binary.LittleEndian.Uint32(b[8:])) }

// Reasons why there is no valid record at an offset.
const (
	endOfRecords = "no record"
	badLength    = "impossible length of a record"
	badSynced    = "impossible synced offset of a record"
	badChecksum  = "wrong checksum of a record"
)

// frame returns the size of the record at the start of b. It checks only the length. left
// is the number of bytes up to the end of the segment; b has at least min(left,
// recordHeader) bytes. If reason is not empty, there is no record.
func frame(b []byte, left int64) (size int64, reason string) {
	if left < recordHeader {
		return 0, endOfRecords
	}
	n, _ := recordLength(b)
	switch {
	case n == 0:
		return 0, endOfRecords
	case Cost(n) > left:
		return 0, badLength
	}
	return Cost(n), ""
}

// checkHeader returns the reason why the header at the start of b, at off in its segment,
// is not valid, or an empty string.
func checkHeader(b []byte, seed uint32, off int64) (reason string) {
	switch {
	case recordSynced(b) > off:
		return badSynced
	case crc32.Update(seed^uint32(off), castagnoli, b[4:16]) != binary.LittleEndian.Uint32(b):
		return badChecksum
	}
	return ""
}

// checkPayload returns the reason why the payload of the record at the start of b is not
// valid, or an empty string.
func checkPayload(b []byte) (reason string) {
	if crc32.Checksum(payloadOf(b), castagnoli) != binary.LittleEndian.Uint32(b[12:]) {
		return badChecksum
	}
	return ""
}

// check returns the reason why the record at the start of b, at off in its segment, is
// not valid, or an empty string. b contains the whole record.
func check(b []byte, seed uint32, off int64) (reason string) {
	if reason := checkHeader(b, seed, off); reason != "" {
		return reason
	}
	return checkPayload(b)
}

// payloadOf returns the payload of the record at the start of b.
func payloadOf(b []byte) []byte {
	n, _ := recordLength(b)
	return b[recordHeader : recordHeader+int64(n)]
}

// internalOf returns the payload of an internal record, or nil for another record.
func internalOf(b []byte) []byte {
	if _, internal := recordLength(b); !internal {
		return nil
	}
	return payloadOf(b)
}
