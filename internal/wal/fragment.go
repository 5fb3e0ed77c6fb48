package wal

import (
	"encoding/binary"
	"math"
)

// A fragment is part of a record that does not fit into the rest of a segment. The
// fragments fill one segment after the other. Each identifies its record and its place in
// it, so that a reader can join the fragments regardless of the data between them.
type fragment struct {
	start Pos // position of the record's first fragment
	from  int // number of bytes of the record's payload before this part
	total int // length of the whole payload
}

// fragmentHeader is the length of the header in a fragment's payload.
const fragmentHeader = 16

// leastFree is the minimum number of free bytes for a fragment. With fewer, the record
// starts in the next segment.
const leastFree = 48

func (f fragment) appendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(f.start.Segment))
	b = binary.LittleEndian.AppendUint32(b, uint32(f.start.Offset))
	b = binary.LittleEndian.AppendUint32(b, uint32(f.from))
	return binary.LittleEndian.AppendUint32(b, uint32(f.total))
}

// decodeFragment splits the payload of a fragment. ok is false for bytes that no log
// writes.
func decodeFragment(p []byte) (f fragment, part []byte, ok bool) {
	if len(p) <= fragmentHeader {
		return fragment{}, nil, false
	}
	f.start = Pos{uint64(binary.LittleEndian.Uint32(p)), int64(binary.LittleEndian.Uint32(p[4:]))}
	f.from, f.total = int(binary.LittleEndian.Uint32(p[8:])), int(binary.LittleEndian.Uint32(p[12:]))
	part = p[fragmentHeader:]
	return f, part, f.total <= MaxPayload && f.from >= 0 && f.from+len(part) <= f.total
}

// A joiner joins the fragments of records, one record at a time. The zero joiner is
// empty.
type joiner struct {
	fragment
	payload []byte
}

// add adds a fragment, and returns the payload of its record if that is complete. It
// ignores a fragment if the start of its record is missing.
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
	// A log that heals repeats fragments that might not be durable.
	j.payload = append(j.payload[:f.from], part...)
	if len(j.payload) < j.total {
		return Pos{}, nil
	}
	start, payload = j.start, j.payload
	*j = joiner{}
	return start, payload
}

// appendSplit appends a record, or the rest of a record that starts in a durable segment,
// to the active segment and to the segments that acquire returned for it.
func (l *Log) appendSplit(f fragment, spare []*segment, parts ...[]byte) Pos {
	n := f.total - f.from
	for {
		s := l.active()
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
			s.continues, s.continuation = f.start, s.end
			if m < n {
				s.continuation = math.MaxInt64
			}
		}
		if f.from, n = f.from+m, n-m; n == 0 {
			return f.start
		}
	}
}

// fits reports whether n bytes fit: a whole payload, or the rest of one.
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

// segmentsFor returns the number of segments that a record needs in addition to the
// active segment, which can be nil. n is the length of its payload or, if rest is true,
// of the rest of the payload.
func (p *pool) segmentsFor(active *segment, n int, rest bool) (segments int) {
	free := int64(0)
	if active != nil {
		free = active.free()
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
