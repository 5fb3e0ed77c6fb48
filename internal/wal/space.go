package wal

import (
	"errors"
	"syscall"
)

// Reservations, and what they cost.
//
// Let C be what a segment of the usual size can hold, and call records of up to M
// bytes small (M is C/64, or a little more where segments are small). Records
// are not split, so bytes are lost at the end of a segment. The small records
// that surely fit into a segment with f free bytes have
//
//	usable(f) = max(0, f - (M - 8))
//
// bytes together, because a small record does not fit only if fewer than M bytes are
// free, and sizes are multiples of 8. The room is the sum of usable over the current
// segment and the preallocated ones of the usual size. The promise is
//
//	R1. room >= sum of the charges of all reservations
//
// where a record of c bytes is charged c if it is small: appending it lowers the
// room by at most c. It is charged 2c if it is larger: if it does not fit, less
// than c usable bytes are lost. A record larger than C is charged C, which is what
// the change to a segment of its own may lose, and that segment is preallocated:
//
//	R2. For each size, as many large segments are preallocated as reserved.
//
// Reserve makes segments until R1 and R2 hold with the new charge. So does Append,
// if its record was not reserved. Unreserve lowers the charges, so an Append of the
// same size right after it needs no new segment.

// small returns M.
func (l *Log) small() int64 { return smallFor(l.pool.size) }

func smallFor(segmentSize int64) int64 {
	c := segmentSize - overhead
	return min(max(c/64, 128), c/4) &^ (alignment - 1)
}

// capacity returns C.
func (l *Log) capacity() int64 { return l.pool.size - overhead }

// Overhead returns how many bytes the segments take at most besides n bytes of records.
// Any two that follow each other hold more than one has room for.
func (l *Log) Overhead(n int64) int64 { return (2*n/l.capacity() + 1) * overhead }

func (l *Log) usable(free int64) int64 { return max(0, free-l.small()+alignment) }

// room returns what R1 is about.
func (l *Log) room() int64 {
	room := l.pool.room.Load()
	if tip := l.tip(); tip != nil {
		room += l.usable(tip.free())
	}
	return room
}

func (l *Log) charge(cost int64) int64 {
	switch {
	case cost <= l.small():
		return cost
	case cost <= l.capacity():
		return 2 * cost
	}
	return l.capacity()
}

// NoRoom reports whether an error means that the system has no disk space, descriptor
// or memory left for the log. Then the disk has not failed, and nothing was changed.
func NoRoom(err error) bool {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return errors.Is(err, ErrNoSequence)
}

// Reserve promises that a record that costs n bytes (see [Cost]) can be appended
// later without new space on the disk. Call it once for each record, not for the sum
// of several. Call [Log.Unreserve] with the same n right before the record is appended,
// or when it is not going to be.
//
// If the disk is full the error wraps syscall.ENOSPC, and nothing is reserved. The same holds
// for other errors of making a file. After one Reserve makes no file of that size or a larger
// one until [Log.RetryRoom] is called: thousands of records in a second may ask.
func (l *Log) Reserve(n int64) error {
	if err := l.writable(); err != nil {
		return err
	}
	if n > Cost(MaxPayload) {
		return ErrTooLarge
	}
	charge := l.charge(n)
	for l.room() < l.reserved.Load()+charge {
		if err := l.try(l.pool.add, l.pool.size); err != nil {
			return err
		}
	}
	if n > l.capacity() {
		if err := l.try(l.pool.claim, overhead+n); err != nil {
			return err
		}
	}
	l.reserved.Add(charge)
	return nil
}

// try makes a file of a size, unless it failed before with one of that size or a smaller one.
func (l *Log) try(makeFile func(size int64) error, size int64) error {
	if l.noRoom != nil && size >= l.noRoomFor {
		return l.noRoom
	}
	err := makeFile(size)
	if err != nil {
		l.noRoom, l.noRoomFor = err, size
	}
	return err
}

// RetryRoom lets Reserve make files again.
func (l *Log) RetryRoom() { l.noRoom = nil }

// Unreserve takes back a Reserve of n bytes.
func (l *Log) Unreserve(n int64) {
	if n > l.capacity() {
		l.pool.unclaim(overhead + n)
	}
	if l.reserved.Add(-l.charge(n)) < 0 {
		panic("wal: more unreserved than was reserved")
	}
}

// NeedsPrepare reports whether [Log.Prepare] has something to do. Any goroutine may
// call it. It is cheap.
func (l *Log) NeedsPrepare() bool {
	return !l.pool.prepared.Load() || l.poolIsLow() || l.pool.chores.pending.Load()
}

// poolIsLow reports whether there is less than one preallocated segment more than the
// reservations need.
func (l *Log) poolIsLow() bool {
	return l.pool.room.Load() < l.reserved.Load()+l.pool.usable()
}

// Prepare removes the files of segments that are not needed, and makes segments ahead
// of time, so that the owner need not wait for that: one more than the reservations
// need, and the next one filled with zeros. One goroutine may call it while the owner
// does other things; if the owner itself needs a file, it waits while one is made. An
// error means that some files could not be made or removed; the log itself works.
func (l *Log) Prepare() error {
	err := l.pool.doChores()
	for l.poolIsLow() {
		if e := l.pool.add(l.pool.size); e != nil {
			return errors.Join(err, e)
		}
	}
	return errors.Join(err, l.pool.fill())
}
