package wal

import (
	"errors"
	"syscall"
)

// Reservations and their cost.
//
// A record that does not fit into a segment continues in the next one. That costs at most
// leastFree bytes for each segment: the rest of one that is too small for a fragment is
// lost, or there are one more header of a record and two of fragments. So let
//
//	usable(f) = max(0, f - leastFree)
//
// of a segment with f free bytes, and the room be the sum of that over the current
// segment and the preallocated ones. A record that costs c bytes lowers the room by at
// most c. The promise is
//
//	R1. room >= sum of all reservations
//
// Reserve creates segments until that holds with the new reservation. Append does so,
// too, if its record was not reserved. Unreserve lowers the sum, so an Append of the same
// size right after it needs no new segment.

// Overhead returns the maximum number of bytes that segments need in addition to n bytes
// of records.
func (l *Log) Overhead(n int64) int64 {
	return (n/l.pool.usable() + 1) * (overhead + leastFree)
}

func usable(free int64) int64 { return max(0, free-leastFree) }

// activeRoom returns the room in the active segment.
func (l *Log) activeRoom() int64 {
	if active := l.active(); active != nil {
		return usable(active.free())
	}
	return 0
}

// room returns the room of R1.
func (l *Log) room() int64 { return l.activeRoom() + l.pool.room.Load() }

// NoRoom reports whether an error means that the system has no disk space, file
// descriptor or memory left for the log. In that case, the disk has not failed, and
// nothing was changed.
func NoRoom(err error) bool {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return errors.Is(err, ErrNoSequence)
}

// Reserve promises that records that cost n bytes (see [Cost]) can be appended later
// without new disk space. Call [Log.Unreserve] with the cost of a record right before its
// append, or when the record is dropped.
//
// After an error, such as ENOSPC on a full disk, nothing is reserved. Reserve then
// creates no files for the same or a larger size until [Log.RetryRoom] is called, because
// there can be thousands of calls per second.
func (l *Log) Reserve(n int64) error {
	if err := l.writable(); err != nil {
		return err
	}
	if n > Cost(MaxPayload) {
		return ErrTooLarge
	}
	if missing := l.reserved.Load() + n - l.room(); missing > 0 {
		if l.noRoom != nil && missing >= l.noRoomFor {
			return l.noRoom
		}
		if err := l.pool.grow(missing); err != nil {
			l.noRoom, l.noRoomFor = err, missing
			return err
		}
	}
	l.reserved.Add(n)
	return nil
}

// RetryRoom makes Reserve create files again.
func (l *Log) RetryRoom() { l.noRoom = nil }

// Unreserve cancels a Reserve of n bytes.
func (l *Log) Unreserve(n int64) {
	if l.reserved.Add(-n) < 0 {
		panic("wal: more unreserved than was reserved")
	}
}

// acquire removes segments from the pool. It creates segments so that the room, less the
// given bytes, is still enough for the reservations.
func (l *Log) acquire(bytes int64, segments int) ([]*segment, error) {
	for {
		if l.room()-bytes >= l.reserved.Load() {
			if taken, ok := l.pool.acquire(segments); ok {
				return taken, nil
			}
		}
		if err := l.pool.grow(1); err != nil {
			return nil, err
		}
	}
}

// NeedsPrepare reports whether [Log.Prepare] has work to do. Any goroutine can call it.
// It is cheap.
func (l *Log) NeedsPrepare() bool {
	return !l.pool.prepared.Load() || l.pool.isLow(l.reserved.Load()) || l.pool.removals.pending.Load()
}

// Prepare removes the files of deletable segments. It also preallocates segments, one
// more than the reservations need, and fills the next one with zeros. One goroutine can
// call it while the owner works; the owner waits only if it needs a file itself. An error
// means that Prepare could not create or remove some files; the log itself works.
func (l *Log) Prepare() error {
	err := l.pool.removeDeletable()
	for l.pool.isLow(l.reserved.Load()) {
		if e := l.pool.grow(1); e != nil {
			return errors.Join(err, e)
		}
	}
	return errors.Join(err, l.pool.fill())
}
