package wal

import (
	"encoding/binary"
	"math"
)

// A record that does not fit into the rest of a segment is split. Its fragments fill one
// segment after the other, and each says of which record it is which part: so whoever
// reads them joins what belongs together, whatever lies between.
type fragment struct {
	start Pos // of the record: of its first fragment
	from  int // how many bytes of the record's payload come before
	total int // length of that payload
}

// fragmentHeader is the length of what the payload of a fragment begins with.
const fragmentHeader = 16

// leastFree is how many bytes must be free for a fragment. If fewer are, the record
// begins in the next segment.
const leastFree = 48

func (f fragment) appendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(f.start.Segment))
	b = binary.LittleEndian.AppendUint32(b, uint32(f.start.Offset))
	b = binary.LittleEndian.AppendUint32(b, uint32(f.from))
	return binary.LittleEndian.AppendUint32(b, uint32(f.total))
}

// decodeFragment splits the payload of a fragment. ok is false for what no log has
// written.
func decodeFragment(p []byte) (f fragment, part []byte, ok bool) {
	if len(p) <= fragmentHeader {
		return fragment{}, nil, false
	}
	f.start = Pos{uint64(binary.LittleEndian.Uint32(p)), int64(binary.LittleEndian.Uint32(p[4:]))}
	f.from, f.total = int(binary.LittleEndian.Uint32(p[8:])), int(binary.LittleEndian.Uint32(p[12:]))
	part = p[fragmentHeader:]
	return f, part, f.total <= MaxPayload && f.from+len(part) <= f.total
}

// A joiner joins the fragments of records, one record at a time. The zero joiner has
// none.
type joiner struct {
	fragment
	payload []byte
}

// add adds a fragment, and returns the payload of its record if that is whole now. A
// fragment whose record began elsewhere, or was given up, is nothing.
func (j *joiner) add(p []byte) (start Pos, payload []byte) {
	f, part, ok := decodeFragment(p)
	switch {
	case !ok:
		return Pos{}, nil
	case f.from == 0:
		j.fragment, j.payload = f, nil
	case f.start != j.start || f.total != j.total || f.from > len(j.payload):
		return Pos{}, nil
	}
	// A log that heals writes again what it did not know to be durable.
	j.payload = append(j.payload[:f.from], part...)
	if len(j.payload) < j.total {
		return Pos{}, nil
	}
	start, payload = j.start, j.payload
	*j = joiner{}
	return start, payload
}

// appendSplit appends a record, or the rest of one that begins in a segment which is durable,
// to the tip and the segments that take has returned for it.
func (l *Log) appendSplit(f fragment, spare []*segment, parts ...[]byte) Pos {
	n := f.total - f.from
	for {
		s := l.tip()
		whole := f.from == 0
		switch {
		case s == nil || s.free() < leastFree && !fits(n, !whole, s.free()):
			l.begin(spare[0])
			spare = spare[1:]
			continue
		case whole && fits(n, false, s.free()):
			return s.append(uint32(n), parts...)
		case whole:
			f.start = Pos{s.sequence, s.end}
		}
		m := min(n, int(s.free())-recordHeader-fragmentHeader)
		var piece [][]byte
		piece, parts = cut(parts, m)
		s.append(uint32(fragmentHeader+m)|fragmentBit, append([][]byte{f.appendTo(nil)}, piece...)...)
		if f.from > 0 {
			s.joins, s.joined = f.start, s.end
			if m < n {
				s.joined = math.MaxInt64
			}
		}
		if f.from, n = f.from+m, n-m; n == 0 {
			return f.start
		}
	}
}

// fits reports whether so many bytes fit: a whole payload, or the rest of one.
func fits(n int, rest bool, free int64) bool {
	if rest {
		n += fragmentHeader
	}
	return Cost(n) <= free
}

// cut splits the concatenation of parts after n bytes.
func cut(parts [][]byte, n int) (head, rest [][]byte) {
	for i, p := range parts {
		if len(p) >= n {
			return append(head, p[:n]), append([][]byte{p[n:]}, parts[i+1:]...)
		}
		head, n = append(head, p), n-len(p)
	}
	return head, nil
}

// segmentsFor returns how many segments more than the tip, which may be nil, a record with
// a payload of n bytes takes, or the rest of one.
func (p *pool) segmentsFor(tip *segment, n int, rest bool) (segments int) {
	free := int64(0)
	if tip != nil {
		free = tip.free()
	}
	for !fits(n, rest, free) {
		if free >= leastFree {
			n -= int(free) - recordHeader - fragmentHeader
			rest = true
		}
		free = p.capacity()
		segments++
	}
	return segments
}
