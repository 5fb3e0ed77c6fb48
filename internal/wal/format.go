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
	version    = 4
	headerSize = 48

	internalBit = 1 << 31
	fragmentBit = 1 << 30
	alignment   = 8

	kindLink    = 1
	kindClosing = 3
	kindOldest  = 4
)

// Sizes of the other parts of a segment. Each segment keeps closingSize bytes free, so
// that it can be closed on a full disk.
var (
	firstRecord = headerSize + Cost(linkPayload) // offset of the first record after the link
	closingSize = Cost(1)
	overhead    = firstRecord + closingSize
)

// pointer is the length of an internal payload that identifies a segment: its kind, 7
// zeros and the sequence. linkPayload is the length of a link's payload.
const (
	pointer     = 16
	linkPayload = 40
)

// MaxPayload is the maximum length of a record's payload in bytes: a gibibyte for the
// largest job, and room for its attributes.
const MaxPayload = 1<<30 + 1<<16

// ErrCorrupt matches every [*CorruptError], with errors.Is.
var ErrCorrupt = errors.New("log is damaged")

// A CorruptError reports the position and cause of damage.
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

// A Pos is the position of a record: its segment's sequence and the offset of its first
// byte in the segment. The zero Pos is before all records.
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

// IsFileName reports whether a name has the form of a segment's file name. Such a file
// belongs to a log, even if its sequence is invalid.
func IsFileName(name string) bool {
	is, _ := filepath.Match("beanpole.*.wal", name)
	return is
}

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

// lockName returns the path of the lock file, which beanstalkd also uses.
func lockName(dir string) string { return filepath.Join(dir, "lock") }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A header is the start of a segment.
type header struct {
	log      uint64
	sequence uint64
	created  int64
	size     int64 // size of the file until the segment is closed
}

func (h header) encode() []byte {
	b := make([]byte, 0, headerSize)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint32(b, headerSize)
	b = binary.LittleEndian.AppendUint64(b, h.log)
	b = binary.LittleEndian.AppendUint64(b, h.sequence)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.created))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.size))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// ErrVersion reports segments of another version. Open wraps it.
var ErrVersion = errors.New("segment of another version of beanpole")

var errNoHeader = errors.New("damaged header")

func decodeHeader(b []byte) (header, error) {
	if len(b) < headerSize || string(b[:8]) != magic ||
		binary.LittleEndian.Uint32(b[44:]) != crc32.Checksum(b[:44], castagnoli) {
		return header{}, errNoHeader
	}
	if binary.LittleEndian.Uint32(b[8:]) != version || binary.LittleEndian.Uint32(b[12:]) != headerSize {
		return header{}, ErrVersion
	}
	return header{
		log:      binary.LittleEndian.Uint64(b[16:]),
		sequence: binary.LittleEndian.Uint64(b[24:]),
		created:  int64(binary.LittleEndian.Uint64(b[32:])),
		size:     int64(binary.LittleEndian.Uint32(b[40:])),
	}, nil
}

// seed returns the start value of the checksums of the segment's records.
func (h header) seed() uint32 {
	b := make([]byte, 0, 16)
	b = binary.LittleEndian.AppendUint64(b, h.log)
	b = binary.LittleEndian.AppendUint64(b, h.sequence)
	return crc32.Checksum(b, castagnoli)
}

// A link is the first record of a segment. It identifies the previous segment.
type link struct {
	log    uint64 // the number in the header, in case the header is damaged
	prev   Pos    // end of the previous segment; zero in a log's first segment
	oldest uint64 // sequence of the oldest segment that was needed
}

func (l link) appendTo(dst []byte, seed uint32) []byte {
	b := make([]byte, 8, linkPayload)
	b[0] = kindLink
	b = binary.LittleEndian.AppendUint64(b, l.log)
	b = binary.LittleEndian.AppendUint64(b, l.prev.Segment)
	b = binary.LittleEndian.AppendUint64(b, uint64(l.prev.Offset))
	b = binary.LittleEndian.AppendUint64(b, l.oldest)
	return appendRecord(dst, seed, headerSize, headerSize, uint32(len(b))|internalBit, b)
}

// decodeLink decodes the link at the start of b, for a segment with the given sequence.
func decodeLink(b []byte, sequence uint64) (link, bool) {
	if int64(len(b)) < firstRecord-headerSize {
		return link{}, false
	}
	n, internal := recordLength(b)
	if n != linkPayload || !internal || b[recordHeader] != kindLink {
		return link{}, false
	}
	p := b[recordHeader:]
	l := link{
		log:    binary.LittleEndian.Uint64(p[8:]),
		prev:   Pos{binary.LittleEndian.Uint64(p[16:]), int64(binary.LittleEndian.Uint64(p[24:]))},
		oldest: binary.LittleEndian.Uint64(p[32:]),
	}
	seed := header{log: l.log, sequence: sequence}.seed()
	return l, check(b, seed, headerSize) == "" && l.prev.Segment < sequence && l.prev.Offset >= 0 && l.oldest <= sequence
}

// pointToOldest returns the internal payload that identifies the oldest needed segment.
func pointToOldest(sequence uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{kindOldest, 7: 0}, sequence)
}

// pointee is the inverse of pointToOldest. It returns 0 for any other payload.
func pointee(payload []byte) uint64 {
	if len(payload) != pointer || payload[0] != kindOldest {
		return 0
	}
	return binary.LittleEndian.Uint64(payload[8:])
}
