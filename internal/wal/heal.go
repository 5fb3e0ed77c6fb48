package wal

import (
	"errors"
	"slices"
)

// A healing is the state of a Recover that has not succeeded.
type healing struct {
	l       *Log
	failed  *segment  // the segment that failed first
	records []unsaved // the records that were not durable when it failed
	sealed  int       // number of segments in Log.sealed when it failed
	prev    Pos       // the durable end of the last segment that no link will skip
}

// An unsaved is a record, or the rest of a record whose start is durable, that must be
// written again.
type unsaved struct {
	fragment
	payload []byte
}

// Recover tries to leave the failed state: it writes all records since the last
// successful sync to a new segment and makes them durable. Then it calls moved, if it is
// not nil, for each of them in order, with the old and the new position. After an error
// the log is unchanged, and Recover can be called again. Earlier Targets stay failed.
//
// Recover needs room that is not reserved, in addition to all reservations. Outside the
// failed state it does nothing.
func (l *Log) Recover(moved func(from, to Pos, payload []byte)) error {
	if l.lock == nil || l.recovery != nil || l.err == ErrClosed {
		return l.writable()
	}
	if l.err == nil && len(l.open) > 0 {
		l.err = l.open[0].failure() // no Flush has returned the error yet
	}
	if l.err == nil {
		return nil
	}
	h := l.healing
	if h == nil {
		h = &healing{l: l}
		h.abandon()
		l.healing = h // from now on, failed records are not durable
	}
	if errors.Is(l.err, ErrLost) { // the preallocated files might be lost as well
		if err := l.pool.removeExcept(0); err != nil {
			return err
		}
	}
	to, err := h.rewrite()
	if err != nil {
		return l.fail(err)
	}
	// Truncate only now, even if the disk is full. With a relaxed sync, some acknowledged
	// records can exist only in the kernel's cache, and must survive if the process is
	// killed. Also, after an earlier truncation, a power failure before the rewrite would
	// leave a last segment that is too short.
	h.failed.truncate()
	l.healing, l.err, l.noRoom = nil, nil, nil
	for i := range l.deletable {
		l.deletable[i].removedBy = Pos{} // rewrite has recorded the removal, possibly in an earlier segment
	}
	if moved != nil {
		for i, r := range h.records {
			if r.from == 0 { // otherwise, the start has not moved
				moved(r.start, to[i], r.payload)
			}
		}
	}
	return nil
}

// abandon closes the failed segment to new records and collects its records.
func (h *healing) abandon() {
	l := h.l
	failed, planned := l.open[0], l.open[1:]
	h.failed = failed
	for _, s := range l.open {
		h.records = s.unsynced(h.records)
	}
	l.noteDurable()
	end := failed.synced.Load()
	if end >= firstRecord {
		l.prev = Pos{failed.sequence, end}
	} else {
		end = 0 // not even its link is durable
	}
	l.sealed = append(l.sealed, Segment{failed.sequence, end})
	l.pool.putBack(planned)
	l.open = nil
	h.sealed, h.prev = len(l.sealed), l.prev
}

// unsynced appends the records that are not durable, except internal ones, which the link
// of the new segment replaces.
func (s *segment) unsynced(records []unsaved) []unsaved {
	for off := max(s.synced.Load(), firstRecord); off < s.end; {
		b := s.buf[off-s.base:]
		n, internal := recordLength(b)
		f, p := fragment{start: Pos{s.sequence, off}, total: n}, payloadOf(b)
		if isFragment(b) {
			f, p, _ = decodeFragment(p)
		}
		if last := len(records) - 1; f.from > 0 && last >= 0 {
			records[last].payload = slices.Concat(records[last].payload, p)
		} else if !internal {
			records = append(records, unsaved{f, p})
		}
		off += Cost(n)
	}
	return records
}

// rewrite appends the records again and makes them durable, or changes nothing.
func (h *healing) rewrite() (to []Pos, err error) {
	l := h.l
	for _, r := range h.records {
		rest := r.from > 0
		spare, err := l.acquire(Cost(fragmentHeader+len(r.payload)), l.pool.segmentsFor(l.active(), len(r.payload), rest))
		if err != nil {
			h.unplan()
			return nil, err
		}
		to = append(to, l.appendSplit(r.fragment, spare, r.payload))
	}
	if l.active() == nil { // there are no records, but a link must contain the end of the failed segment
		_, err = l.makeRoom(0)
	}
	if err == nil && len(l.deletable) > 0 {
		var s *segment
		if s, err = l.makeRoom(Cost(pointer)); err == nil {
			s.append(pointer|internalBit, pointToOldest(l.sealed[0].Sequence))
		}
	}
	if err == nil {
		_, err = l.acquire(0, 0)
	}
	if err != nil {
		h.unplan()
		return nil, err
	}
	if err = l.flush(); err == nil {
		err = l.Target().Sync()
	}
	if err != nil {
		h.undo()
		return nil, err
	}
	return to, nil
}

// unplan returns the planned segments, to which nothing was written. The next attempt can
// write other records to them.
func (h *healing) unplan() {
	h.l.pool.putBack(h.l.open)
	h.l.open = nil
}

// undo gives up the segments of a failed attempt. The link of the next attempt skips
// them.
func (h *healing) undo() {
	l := h.l
	failed := slices.Clone(l.sealed[h.sealed:])
	if len(l.open) > 0 {
		s := l.open[0]
		s.closeFile()
		failed = append(failed, Segment{Sequence: s.sequence})
		l.pool.putBack(l.open[1:])
	}
	l.sealed, l.open = l.sealed[:h.sealed:h.sealed], nil
	l.prev = h.prev
	for _, s := range l.pool.removeNewestFirst(failed) {
		l.sealed = append(l.sealed, Segment{Sequence: s.Sequence})
	}
	h.sealed = len(l.sealed)
}

// removeNewestFirst removes the files of segments, and returns the segments whose files
// remain. Each removal is durable before the next one, because if a power failure
// restored a segment without its predecessor, its link would look like damage.
func (p *pool) removeNewestFirst(segments []Segment) (left []Segment) {
	for i := len(segments) - 1; i >= 0; i-- {
		if removeFile(p.fs, p.path(segments[i].Sequence)) != nil {
			return segments[:i+1]
		}
		if i > 0 && p.fs.SyncDir(p.dir) != nil {
			return segments[:i]
		}
	}
	return nil
}
