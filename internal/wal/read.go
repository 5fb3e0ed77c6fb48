package wal

import (
	"cmp"
	"fmt"
	"slices"
)

// A Reader reads records of sealed segments. It never waits for the log: one goroutine,
// not necessarily the owner, can use a Reader while the owner writes, seals and removes
// segments. If the file of a segment was removed, the error wraps fs.ErrNotExist.
type Reader struct {
	pool     *pool     // only its static fields
	segments []Segment // like Log.sealed
	open     Segment   // the flushed part of the open segment, for records that end there; or zero

	sequence uint64 // the segment whose file is open, or 0
	window
	seed uint32
}

// NewReader returns a reader of segments that [Log.Sealed] returned. Any goroutine can
// call it. The caller must close the reader.
func (l *Log) NewReader(sealed []Segment) *Reader {
	return &Reader{pool: &l.pool, segments: sealed}
}

// Close closes the open file.
func (r *Reader) Close() {
	if r.sequence != 0 {
		r.file.Close()
	}
	r.sequence = 0
}

// find returns the index of a segment in r.segments, or the index of the first segment
// after it.
func (r *Reader) find(sequence uint64) (i int, ok bool) {
	return slices.BinarySearchFunc(r.segments, sequence, func(s Segment, sequence uint64) int {
		return cmp.Compare(s.Sequence, sequence)
	})
}

// After returns the sequence of the first segment after the given one, or 0 if there is
// none.
func (r *Reader) After(sequence uint64) uint64 {
	i, _ := r.find(sequence + 1)
	if i == len(r.segments) {
		return 0
	}
	return r.segments[i].Sequence
}

// ReadSealed is [Reader.Read] for the owner. It also reads records that end in the open
// segment. The file stays open for the next call.
func (l *Log) ReadSealed(from Pos, about int64, fn func(Record) error) (next Pos, done bool, err error) {
	r := &l.reader
	r.pool, r.segments, r.open = &l.pool, l.sealed, Segment{}
	if len(l.open) > 0 {
		r.open = Segment{Sequence: l.open[0].sequence, End: l.open[0].flushed.Load()}
	}
	return r.Read(from, about, fn)
}

// Read reads records of a segment and calls fn for each: for at least one, and for about
// the given number of bytes, but at most 256 KiB. from is a position that Append or Read
// returned, or has offset 0 for the start. fn must not keep the payload. Read returns an
// error of fn.
//
// next is the position to continue from. done reports whether the segment has no more
// records. If the segment is damaged, the error is a [*CorruptError].
func (r *Reader) Read(from Pos, about int64, fn func(Record) error) (next Pos, done bool, err error) {
	i, ok := r.find(from.Segment)
	if !ok {
		return from, false, ErrNotSealed
	}
	end := r.segments[i].End
	if from.Offset == 0 {
		from.Offset = headerSize
	}
	if from.Offset >= end {
		return from, true, nil
	}
	if err := r.openFile(r.segments[i]); err != nil {
		return from, false, fmt.Errorf("wal: read segment %d: %w", from.Segment, err)
	}
	data, reason, err := r.records(from.Offset, end, int(max(1, min(about, defaultBlockSize))))
	if err != nil {
		return from, false, err
	}
	for len(data) > 0 {
		n, internal := recordLength(data)
		if reason := check(data, r.seed, from.Offset); reason != "" {
			return from, false, &CorruptError{r.path, from.Offset, reason}
		}
		payload := payloadOf(data)
		if isFragment(data) {
			if payload, err = r.join(i, payload); err != nil {
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
		return from, false, &CorruptError{r.path, from.Offset, reason}
	}
	return from, from.Offset >= end, nil
}

// openFile opens the file of a segment, if it is not open. The owner can truncate the
// file, but not before the end of the segment.
func (r *Reader) openFile(s Segment) error {
	if r.sequence == s.Sequence {
		return nil
	}
	r.Close()
	path := r.pool.path(s.Sequence)
	f, err := r.pool.fs.Open(path)
	if err != nil {
		return err
	}
	r.sequence, r.seed = s.Sequence, header{log: r.pool.log, sequence: s.Sequence}.seed()
	r.file, r.path, r.size = f, path, s.End
	r.forget()
	return nil
}

// join returns the payload of the record that starts with a fragment in segment i. It is
// nil if the fragment is not the first one, or the rest of the record was never written.
func (r *Reader) join(i int, first []byte) ([]byte, error) {
	f, _, ok := decodeFragment(first)
	if !ok || f.from > 0 {
		return nil, nil
	}
	var j joiner
	j.add(first)
	for _, s := range r.segments[i+1:] {
		if payload, ended, err := j.addFrom(r.pool, s.Sequence, s.End); ended || err != nil {
			return payload, err
		}
	}
	payload, _, err := j.addFrom(r.pool, r.open.Sequence, r.open.End)
	return payload, err
}

// addFrom adds the fragments at the start of a segment. ended reports whether the record
// is complete, or its rest is missing.
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
