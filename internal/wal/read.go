package wal

import (
	"fmt"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A sealedReader keeps the file of ReadSealed open between calls.
type sealedReader struct {
	sequence uint64 // 0 if none
	file     vfs.File
	seed     uint32
	buf      []byte
}

// closeIfReading closes the file if it is that of the segment.
func (r *sealedReader) closeIfReading(sequence uint64) {
	if r.sequence == sequence {
		r.close()
	}
}

func (r *sealedReader) close() {
	if r.sequence != 0 {
		r.file.Close()
	}
	*r = sealedReader{buf: r.buf}
}

// ReadSealed reads records of a sealed segment again, from a position on: at least one
// record, and about the given number of bytes, but at most 256 KiB. The position is
// one that Append or ReadSealed returned, or has offset 0 for the beginning. fn is
// called for each record, and must not keep the payload; its error ends the reading and
// is returned.
//
// next is the position to go on from; done says that the segment has no more. If the
// segment is damaged the error is a [*CorruptError].
func (l *Log) ReadSealed(from Pos, about int64, fn func(Record) error) (next Pos, done bool, err error) {
	i, ok := slices.BinarySearchFunc(l.sealed, from.Segment, func(s Segment, sequence uint64) int {
		return Pos{s.Sequence, 0}.Compare(Pos{sequence, 0})
	})
	if !ok {
		return from, false, ErrNotSealed
	}
	end := l.sealed[i].End
	if from.Offset == 0 {
		from.Offset = headerSize
	}
	if from.Offset >= end {
		return from, true, nil
	}
	r := &l.reader
	if err := r.open(l, from.Segment); err != nil {
		return from, false, fmt.Errorf("wal: read segment %d: %w", from.Segment, err)
	}
	data, reason, err := readRecords(r.file, r.buf, from.Offset, end, int(max(1, min(about, defaultBlockSize))))
	if err != nil {
		return from, false, fmt.Errorf("wal: read segment %d: %w", from.Segment, err)
	}
	if cap(data) <= defaultBlockSize {
		r.buf = data[:0]
	}
	for len(data) > 0 {
		n, internal := recordLength(data)
		if reason := check(data, r.seed, from.Offset); reason != "" {
			return from, false, &CorruptError{l.path(from.Segment), from.Offset, reason}
		}
		if !internal {
			if err := fn(Record{from, payloadOf(data)}); err != nil {
				return from, false, err
			}
		}
		from.Offset += Cost(n)
		data = data[Cost(n):]
	}
	if reason != "" {
		return from, false, &CorruptError{l.path(from.Segment), from.Offset, reason}
	}
	return from, from.Offset >= end, nil
}

// open opens the file of a segment, if it is not open.
func (r *sealedReader) open(l *Log, sequence uint64) error {
	if r.sequence == sequence {
		return nil
	}
	r.close()
	f, err := l.fs.Open(l.path(sequence))
	if err != nil {
		return err
	}
	r.sequence, r.file = sequence, f
	r.seed = header{log: l.pool.log, sequence: sequence}.seed()
	return nil
}
