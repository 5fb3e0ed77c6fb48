package wal

import (
	"fmt"
	"slices"
)

// A sealedReader keeps the file of ReadSealed open between calls.
type sealedReader struct {
	sequence uint64 // 0 if none
	window
	seed uint32
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
	r.sequence = 0
}

// ReadSealed reads records of a sealed segment again: at least one, and about as many bytes
// as given, but at most 256 KiB. from is a position that Append or ReadSealed returned, or
// has offset 0 for the beginning. fn must not keep the payload; its error ends the reading.
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
	data, reason, err := r.records(from.Offset, end, int(max(1, min(about, defaultBlockSize))))
	if err != nil {
		return from, false, err
	}
	for len(data) > 0 {
		n, internal := recordLength(data)
		if reason := check(data, r.seed, from.Offset); reason != "" {
			return from, false, &CorruptError{l.pool.path(from.Segment), from.Offset, reason}
		}
		payload := payloadOf(data)
		if isFragment(data) {
			if payload, err = l.join(i, payload); err != nil {
				return from, false, err
			}
		}
		if !internal && payload != nil {
			if err := fn(Record{from, payload}); err != nil {
				return from, false, err
			}
		}
		from.Offset += Cost(n)
		data = data[Cost(n):]
	}
	if reason != "" {
		return from, false, &CorruptError{l.pool.path(from.Segment), from.Offset, reason}
	}
	return from, from.Offset >= end, nil
}

// open opens the file of a segment, if it is not open.
func (r *sealedReader) open(l *Log, sequence uint64) error {
	if r.sequence == sequence {
		return nil
	}
	r.close()
	f, err := l.fs.Open(l.pool.path(sequence))
	if err != nil {
		return err
	}
	if r.size, err = f.Size(); err != nil {
		f.Close()
		return err
	}
	r.sequence, r.file, r.path = sequence, f, l.pool.path(sequence)
	r.forget()
	r.seed = header{log: l.pool.log, sequence: sequence}.seed()
	return nil
}

// join returns the payload of the record that begins with a fragment in the sealed
// segment i, or nil if the fragment is not a first one, or the rest of the record was
// never written.
func (l *Log) join(i int, first []byte) ([]byte, error) {
	f, _, ok := decodeFragment(first)
	if !ok || f.from > 0 {
		return nil, nil
	}
	var j joiner
	j.add(first)
	for _, s := range l.sealed[i+1:] {
		if payload, ended, err := j.addFrom(&l.pool, s.Sequence, s.End); ended || err != nil {
			return payload, err
		}
	}
	if len(l.open) == 0 {
		return nil, nil
	}
	payload, _, err := j.addFrom(&l.pool, l.open[0].sequence, l.open[0].flushed.Load())
	return payload, err
}

// addFrom adds the fragments at the beginning of a segment. ended says that the record
// is whole, or that its rest is nowhere.
func (j *joiner) addFrom(p *pool, sequence uint64, end int64) (payload []byte, ended bool, err error) {
	if end <= firstRecord {
		return nil, false, nil
	}
	w, err := openWindow(p.fs, p.path(sequence))
	if err != nil {
		return nil, false, err
	}
	defer w.close()
	seed := header{log: p.log, sequence: sequence}.seed()
	for off := firstRecord; off < end; {
		rec, reason, err := w.record(seed, off)
		if err != nil {
			return nil, false, err
		}
		if reason != "" {
			return nil, false, &CorruptError{w.path, off, reason}
		}
		if off += int64(len(rec)); internalOf(rec) != nil {
			continue
		}
		if f, _, ok := decodeFragment(payloadOf(rec)); !ok || !isFragment(rec) || f.start != j.start {
			return nil, true, nil
		}
		if _, payload = j.add(payloadOf(rec)); payload != nil {
			return payload, true, nil
		}
	}
	return nil, false, nil
}
