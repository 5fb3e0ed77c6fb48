package wal

import (
	"slices"
)

// writable says why nothing can be appended.
func (l *Log) writable() error {
	switch {
	case l.err != nil:
		return l.err
	case l.lock == nil:
		return ErrReadOnly
	case l.scan != nil:
		return ErrNotRead
	}
	return nil
}

// Append appends a record whose payload is the concatenation of parts, 1 to
// MaxPayload bytes, and returns where it will be. It copies the parts and
// writes nothing.
//
// It fails in the failed state, which an earlier call has reported. An error that the
// Sync of another goroutine meets is reported by the next Flush: so between two
// flushes either all appends work or none. Append also fails, and changes nothing, if
// all room is reserved and no more can be made; see [Log.Reserve].
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
	cost := Cost(n)
	s, err := l.makeRoom(cost)
	if err != nil {
		return Pos{}, err
	}
	return s.append(uint32(n), parts...), nil
}

// makeRoom returns the segment to which a record of a cost can be appended.
func (l *Log) makeRoom(cost int64) (*segment, error) {
	s := l.tip()
	if s == nil || s.free() < cost {
		return l.extend(cost)
	}
	return s, l.ensureRoom(s.free() - cost)
}

// ensureRoom makes preallocated segments until they are enough for the reservations,
// together with the free bytes of the current segment.
func (l *Log) ensureRoom(free int64) error {
	for l.usable(free)+l.pool.room.Load() < l.reserved.Load() {
		if err := l.pool.add(l.pool.size); err != nil {
			return err
		}
	}
	return nil
}

// extend plans another segment, which has room for a record of a cost.
func (l *Log) extend(cost int64) (*segment, error) {
	size, free := l.pool.size, l.capacity()-cost
	if free < 0 {
		size, free = overhead+cost, 0
	}
	for {
		// The segment itself counts as room while it is in the pool.
		room := l.pool.room.Load() + l.usable(free)
		if size == l.pool.size {
			room -= l.pool.usable()
		}
		if room >= l.reserved.Load() {
			if s := l.pool.acquire(size); s != nil {
				l.begin(s)
				return s, nil
			}
			if err := l.pool.add(size); err != nil {
				return nil, err
			}
		} else if err := l.pool.add(l.pool.size); err != nil {
			return nil, err
		}
	}
}

// begin makes a preallocated segment the tip.
func (l *Log) begin(s *segment) {
	prev, closed := l.prev, l.prevClosed
	if tip := l.tip(); tip != nil {
		tip.close()
		prev, closed = Pos{tip.sequence, tip.closed}, true
	}
	if closed {
		l.successors = append(l.successors, successor{prev, s.sequence})
	}
	s.begin(prev, l.oldest(s.sequence), l.buf)
	l.buf = nil
	l.open = append(l.open, s)
}

// Flush writes what was appended, with one write for each segment, and one sync for
// each that is full. If it fails the log is in the failed state, and what was appended
// is kept for [Log.Recover].
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
		if err := s.failure(); err != nil { // as Target.Sync found
			return err
		}
		if err := s.open(l.fs); err != nil {
			s.fail(err)
			return err
		}
		if err := s.renumber(l.fs, l.dir); err != nil {
			return err
		}
		if s.closed > 0 {
			// The last write gives a file that was cut its length back, with a hole.
			if err := s.lost(); err != nil {
				s.fail(err)
				return err
			}
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

// maxKeptBuffer is the largest buffer that is kept for another segment. It is enough
// for a segment of the default size of which nothing was synced.
const maxKeptBuffer = 16 << 20

// sealFirst seals the first of the open segments.
func (l *Log) sealFirst() error {
	s := l.open[0]
	if err := s.seal(); err != nil {
		return l.fail(err)
	}
	l.sealed = append(l.sealed, Segment{s.sequence, s.closed, true})
	l.prev, l.prevClosed = Pos{s.sequence, s.closed}, true
	if cap(s.buf) <= maxKeptBuffer {
		l.buf = s.buf
	}
	s.buf = nil
	l.open = slices.Delete(l.open, 0, 1)
	return nil
}

// Sync makes what was flushed durable. If it fails the log is in the failed
// state. It makes no system call if there is nothing new.
func (l *Log) Sync() error {
	if err := l.writable(); err != nil {
		return err
	}
	return l.fail(l.Target().Sync())
}

// A Target is what a sync has to make durable: all that was flushed when Target was
// called. The zero Target is durable.
type Target struct {
	s    *segment
	upTo int64
}

// Target returns all that is flushed. The call costs nothing.
func (l *Log) Target() Target {
	if len(l.open) == 0 {
		return Target{}
	}
	s := l.open[0] // older ones are sealed, newer ones not flushed
	return Target{s, s.flushed.Load()}
}

// Sync makes the target durable. Any goroutine may call it, at any time until the log
// is closed. While it waits for the disk, the owner can append and flush. After an
// error the records are durable only when [Log.Recover] has succeeded; the target
// itself stays failed.
func (t Target) Sync() error {
	if t.s == nil {
		return nil
	}
	return t.s.sync(t.upTo)
}

// Durable returns a position: all records before it are durable. While the log
// heals, that is the end of the last segment that counts: the segments that are
// open come after records that are in memory only.
func (l *Log) Durable() Pos {
	if l.healing != nil {
		return l.healing.prev
	}
	if len(l.open) == 0 {
		return l.prev
	}
	return Pos{l.open[0].sequence, l.open[0].synced.Load()}
}
