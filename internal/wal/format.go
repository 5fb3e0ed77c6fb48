package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	magic      = "beanpole"
	version    = 1
	headerSize = 48

	recordHeader = 12
	internalBit  = 1 << 31
	alignment    = 8

	kindLink    = 1
	kindFiller  = 2
	kindClosing = 3
	linkPayload = 32
)

// firstRecord is the offset of the first record after the link.
const firstRecord = headerSize + (recordHeader+linkPayload+alignment-1)&^(alignment-1)

// closingSize is what the closing record takes. Each segment keeps that many
// bytes free for it, so that a full disk does not matter to an orderly end.
const closingSize = (recordHeader + 1 + alignment - 1) &^ (alignment - 1)

// overhead is what a segment holds beside its records.
const overhead = firstRecord + closingSize

// MaxPayload is the largest length of a record's payload in bytes: a gibibyte
// and some room for what the journal puts beside the largest job.
const MaxPayload = 1<<30 + 1<<16

// ErrCorrupt is what every [*CorruptError] is.
var ErrCorrupt = errors.New("log is damaged")

// A CorruptError says where a log is damaged.
type CorruptError struct {
	File   string // path
	Offset int64  // in bytes
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("wal: %s at offset %d: %s", e.File, e.Offset, e.Reason)
}

// Is makes errors.Is(err, ErrCorrupt) work.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// A Pos is the place of a record: its segment's sequence and the offset of its
// first byte in the segment. The zero Pos is before all records.
type Pos struct {
	Segment uint64
	Offset  int64
}

// Compare orders positions as the log does.
func (p Pos) Compare(q Pos) int {
	switch {
	case p.Segment < q.Segment || p.Segment == q.Segment && p.Offset < q.Offset:
		return -1
	case p == q:
		return 0
	}
	return 1
}

// MaxSequence is the largest sequence of a segment.
const MaxSequence = 1<<32 - 1

// FileName returns the base of the name of the segment's file.
func FileName(sequence uint64) string { return fmt.Sprintf("beanpole.%016x.wal", sequence) }

// parseName is the inverse of FileName.
func parseName(name string) (sequence uint64, ok bool) {
	digits, ok := strings.CutPrefix(name, "beanpole.")
	if !ok {
		return 0, false
	}
	digits, ok = strings.CutSuffix(digits, ".wal")
	if !ok || len(digits) != 16 {
		return 0, false
	}
	sequence, err := strconv.ParseUint(digits, 16, 64)
	if err != nil || FileName(sequence) != name || sequence == 0 {
		return 0, false
	}
	return sequence, true
}

// lockName is that of beanstalkd.
func lockName(dir string) string { return filepath.Join(dir, "lock") }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A header is what every segment begins with.
type header struct {
	log      uint64
	sequence uint64
	created  int64
}

func (h header) encode() []byte {
	b := make([]byte, 0, headerSize)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint32(b, headerSize)
	b = binary.LittleEndian.AppendUint64(b, h.log)
	b = binary.LittleEndian.AppendUint64(b, h.sequence)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.created))
	b = binary.LittleEndian.AppendUint32(b, 0)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

var (
	errNoHeader   = errors.New("the header is damaged")
	errNewVersion = errors.New("the segment was written by a newer version of beanpole")
)

func decodeHeader(b []byte) (header, error) {
	if len(b) < headerSize || string(b[:8]) != magic ||
		binary.LittleEndian.Uint32(b[44:]) != crc32.Checksum(b[:44], castagnoli) {
		return header{}, errNoHeader
	}
	if binary.LittleEndian.Uint32(b[8:]) != version || binary.LittleEndian.Uint32(b[12:]) != headerSize {
		return header{}, errNewVersion
	}
	return header{
		log:      binary.LittleEndian.Uint64(b[16:]),
		sequence: binary.LittleEndian.Uint64(b[24:]),
		created:  int64(binary.LittleEndian.Uint64(b[32:])),
	}, nil
}

// seed returns what the checksums of the segment's records start with.
func (h header) seed() uint32 {
	b := make([]byte, 0, 16)
	b = binary.LittleEndian.AppendUint64(b, h.log)
	b = binary.LittleEndian.AppendUint64(b, h.sequence)
	return crc32.Checksum(b, castagnoli)
}

// Cost returns how many bytes of a segment a record with a payload of n bytes
// takes. This is the unit of [Log.Reserve].
func Cost(n int) int64 {
	return (recordHeader + int64(n) + alignment - 1) &^ (alignment - 1)
}

// appendRecord appends the record that will be at off in its segment, with the
// concatenation of parts as its payload. n is their total length, with
// internalBit if the record is internal.
func appendRecord(dst []byte, seed uint32, off, synced int64, n uint32, parts ...[]byte) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, n)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(synced))
	for _, p := range parts {
		dst = append(dst, p...)
	}
	binary.LittleEndian.PutUint32(dst[start:], recordChecksum(seed, off, dst[start+4:]))
	for (len(dst)-start)%alignment != 0 {
		dst = append(dst, 0)
	}
	return dst
}

// recordChecksum returns the checksum of a record of which b is all after it,
// without the padding. With the offset in it, a record is not valid where it
// does not belong.
func recordChecksum(seed uint32, off int64, b []byte) uint32 {
	return crc32.Update(seed^uint32(off), castagnoli, b)
}

// recordLength returns the payload's length in the record at the start of b,
// which has at least recordHeader bytes.
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

// frame tells, looking at its length only, how many bytes the record at the
// start of b takes if there are left bytes from its start to the segment's end.
// b has at least min(left, recordHeader) bytes. If reason is not empty there is
// no record.
func frame(b []byte, left int64) (size int64, reason string) {
	if left < recordHeader {
		return 0, endOfRecords
	}
	n, _ := recordLength(b)
	switch {
	case n == 0:
		return 0, endOfRecords
	case n > MaxPayload || Cost(n) > left:
		return 0, badLength
	}
	return Cost(n), ""
}

// checkRecord tells why the record at the start of b, which holds it whole, and
// at off in its segment is not valid.
func checkRecord(b []byte, seed uint32, off int64) (reason string) {
	n, _ := recordLength(b)
	if recordSynced(b) > off {
		return badMark
	}
	if recordChecksum(seed, off, b[4:recordHeader+n]) != binary.LittleEndian.Uint32(b) {
		return badChecksum
	}
	return ""
}

// A link is the first record of a segment: it says where the log comes from.
type link struct {
	log  uint64 // that of the header, for when that is damaged
	prev Pos    // the end of the segment before; zero in a log's first segment
}

func (l link) appendTo(dst []byte, seed uint32) []byte {
	b := make([]byte, 8, linkPayload)
	b[0] = kindLink
	b = binary.LittleEndian.AppendUint64(b, l.log)
	b = binary.LittleEndian.AppendUint64(b, l.prev.Segment)
	b = binary.LittleEndian.AppendUint64(b, uint64(l.prev.Offset))
	return appendRecord(dst, seed, headerSize, headerSize, linkPayload|internalBit, b)
}

// decodeLink reads the link that begins at b, which is headerSize into a
// segment with the given sequence.
func decodeLink(b []byte, sequence uint64) (link, bool) {
	if len(b) < firstRecord-headerSize {
		return link{}, false
	}
	n, internal := recordLength(b)
	if n != linkPayload || !internal || b[recordHeader] != kindLink {
		return link{}, false
	}
	p := b[recordHeader:]
	l := link{
		log:  binary.LittleEndian.Uint64(p[8:]),
		prev: Pos{binary.LittleEndian.Uint64(p[16:]), int64(binary.LittleEndian.Uint64(p[24:]))},
	}
	seed := header{log: l.log, sequence: sequence}.seed()
	return l, checkRecord(b, seed, headerSize) == "" && l.prev.Segment < sequence && l.prev.Offset >= 0
}
