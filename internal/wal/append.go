package wal

import "slices"

// writable returns the reason why no record can be appended, or nil.
func (l *Log) writable() error {
	switch {
	case l.err != nil:
		return l.err
	case l.lock == nil:
		return ErrReadOnly
	case l.recovery != nil:
		return ErrNotRead
	}
	return nil
}

// Append appends a record whose payload is the concatenation of parts, 1 to MaxPayload
// bytes, and returns its future position. It copies the parts and writes nothing.
//
// It fails in the failed state. If another goroutine's Sync fails, only the next Flush
// returns the error, so that between two flushes either all appends succeed or none does.
// Append also fails, and changes nothing, if all room is reserved and no more can be
// created; see [Log.Reserve].
func (l *Log) Append(parts ...[]byte) (Pos, error) {
	if err := l.writable(); err != nil {
		return Pos{}, err
	}
	return l.append(parts...)
}

func (l *Log) append(parts ...[]byte) (Pos, error) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if n > MaxPayload {
		return Pos{}, ErrTooLarge
	}
	if n == 0 {
		panic("wal: empty record")
	}
	if active := l.active(); active != nil && fits(n, false, active.free()) && l.room()-Cost(n) >= l.reserved.Load() {
		return active.append(uint32(n), parts...), nil // the usual case
	}
	spare, err := l.acquire(Cost(n), l.pool.segmentsFor(l.active(), n, false))
	if err != nil {
		return Pos{}, err
	}
	return l.appendSplit(fragment{total: n}, spare, parts...), nil
}

// makeRoom returns the segment to which an internal record of the given cost can be
// appended. Internal records are not split.
func (l *Log) makeRoom(cost int64) (*segment, error) {
	if active := l.active(); active != nil && active.free() >= cost {
		_, err := l.acquire(l.activeRoom()-usable(active.free()-cost), 0)
		return active, err
	}
	spare, err := l.acquire(l.activeRoom()+l.pool.usable()-usable(l.pool.capacity()-cost), 1)
	if err != nil {
		return nil, err
	}
	l.begin(spare[0])
	return spare[0], nil
}

// begin makes a preallocated segment the active one.
func (l *Log) begin(s *segment) {
	prev := l.prev
	if active := l.active(); active != nil {
		active.close()
		prev = Pos{active.sequence, active.end}
	}
	s.begin(prev, l.oldest(s.sequence), l.buf)
	l.buf = nil
	l.open = append(l.open, s)
}

// Flush writes the appended records, with one write per segment and one sync per full
// segment. After an error the log is in the failed state.
func (l *Log) Flush() error {
	if err := l.writable(); err != nil {
		return err
	}
	return l.fail(l.flush())
}

func (l *Log) flush() error {
	l.noteDurable()
	for len(l.open) > 0 {
		s := l.open[0]
		if err := s.failure(); err != nil { // Target.Sync has failed
			return err
		}
		if err := s.open(l.fs); err != nil {
			s.fail(err)
			return err
		}
		if err := s.flush(); err != nil {
			return err
		}
		if len(l.open) == 1 {
			return nil
		}
		if err := l.sealFirst(); err != nil {
			return err
		}
	}
	return nil
}

// fail enters the failed state if err is not nil.
func (l *Log) fail(err error) error {
	if err != nil {
		l.err = err
	}
	return err
}

// maxKeptBuffer is the size of the largest buffer that is kept for another segment:
// enough for a segment of the default size that was never synced.
const maxKeptBuffer = 16 << 20

// sealFirst seals the first of the open segments.
func (l *Log) sealFirst() error {
	s := l.open[0]
	if err := s.seal(); err != nil {
		return l.fail(err)
	}
	l.prev = Pos{s.sequence, s.end}
	l.sealed = append(l.sealed, Segment{s.sequence, s.end})
	if cap(s.buf) <= maxKeptBuffer {
		l.buf = s.buf
	}
	s.buf = nil
	l.open = slices.Delete(l.open, 0, 1)
	return nil
}

// Sync makes all flushed records durable. If it fails, the log is in the failed state. If
// all records are durable, it makes no system call.
func (l *Log) Sync() error {
	if err := l.writable(); err != nil {
		return err
	}
	return l.fail(l.Target().Sync())
}

// A Target is a position that a sync must make durable: the end of the flushed records
// when [Log.Target] was called. The zero Target is durable.
type Target struct {
	s    *segment
	upTo int64
}

// Target returns the end of the flushed records. The call costs nothing.
func (l *Log) Target() Target {
	if len(l.open) == 0 {
		return Target{}
	}
	s := l.open[0] // older segments are sealed; newer ones are not flushed
	return Target{s, s.flushed.Load()}
}

// Sync makes the target durable. Any goroutine can call it until the log is closed, while
// the owner appends and flushes. After an error, the records are durable only when
// [Log.Recover] has succeeded; the target itself stays failed.
func (t Target) Sync() error {
	if t.s == nil {
		return nil
	}
	return t.s.sync(t.upTo)
}

// Durable returns a position before which all records are durable. While the log heals,
// it is the durable end of the failed segment. If not even the link of that segment is
// durable, it is the end of the previous segment.
func (l *Log) Durable() Pos {
	if l.healing != nil {
		return l.healing.prev
	}
	if len(l.open) == 0 {
		return l.prev
	}
	s := l.open[0]
	synced := s.synced.Load()
	if synced < s.continuation {
		return s.continues
	}
	return Pos{s.sequence, synced}
}
