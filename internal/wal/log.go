package wal

import (
	"cmp"
	"errors"
	"io"
	"sync/atomic"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// Errors of a log that is not ready.
var (
	ErrClosed    = errors.New("wal: closed log")
	ErrReadOnly  = errors.New("wal: read-only log")
	ErrNotRead   = errors.New("wal: write before replay")
	ErrTooLarge  = errors.New("wal: record too large")
	ErrNotSealed = errors.New("wal: no such sealed segment")

	// ErrNoSequence reports that the log has used MaxSequence segments. Its records must
	// be written to a new log.
	ErrNoSequence = errors.New("wal: no segment sequence left")
)

// Defaults and limits of [Options].
const (
	DefaultSegmentSize = 10 << 20
	MinSegmentSize     = 512
	MaxSegmentSize     = 1 << 30
)

// Options configures a log. The zero value selects the defaults.
type Options struct {
	// SegmentSize is the size of a segment file in bytes. Zero means DefaultSegmentSize.
	// It is limited to MinSegmentSize and MaxSegmentSize, and rounded up to a multiple of
	// 8. Existing segments keep their size.
	SegmentSize int64

	// Parallel is the approximate number of blocks that Replay checks and decodes
	// concurrently. Zero means GOMAXPROCS.
	Parallel int

	// ReadOnly opens a log without a lock, and changes nothing. If a server writes the
	// log at the same time, its end looks torn.
	ReadOnly bool

	// Progress is called for each block of Replay, in the caller's goroutine. It can be
	// nil.
	Progress func(done, total int64)

	// LogID identifies the segments of a new log. Zero means a random number. A log that
	// has segments keeps its ID.
	LogID uint64

	// Created is a time in nanoseconds since 1970, which the log stores in the headers of
	// segments. It is for information only.
	Created int64

	blockSize int // block size of reading, for tests; 0 means defaultBlockSize
}

// A Log is an open log. Only one goroutine, the owner, can call its methods, except
// [Log.Prepare], [Log.NeedsPrepare] and [Log.NewReader].
type Log struct {
	// Constant after Open.
	fs   vfs.FS
	dir  string
	opt  Options
	lock io.Closer // nil if read-only

	pool pool // has its own lock

	// reserved is the sum of all reservations, in bytes. The owner writes it; Prepare
	// reads it.
	reserved atomic.Int64

	// The owner uses the following fields.

	err       error       // the error that prevents appends, or nil
	recovery  *recovery   // the result of Open; nil after Replay
	sealed    []Segment   // oldest first; elements never change, because readers share them
	open      []*segment  // the active segment and the planned segments after it
	prev      Pos         // the end of the last sealed segment that no link skips
	deletable []deletable // unneeded segments; Prepare removes their files when their removal is durable
	buf       []byte      // buffer for the next segment
	healing   *healing    // the state of Recover, or nil
	reader    Reader      // reader for ReadSealed

	noRoom    error // the error of Reserve for noRoomFor bytes, or nil if Reserve can try again
	noRoomFor int64
	removed   uint64 // older segments were removed, although a crash can restore them
}

// A Segment is a sealed segment.
type Segment struct {
	Sequence uint64
	End      int64 // the end of its records, or 0 if a link skips it
}

// Stats describes a log.
type Stats struct {
	Oldest       uint64 // sequence of the oldest segment, or 0
	Current      uint64 // sequence of the active segment, or 0
	Segments     int    // number of sealed and active segments
	Bytes        int64  // bytes used in these segments
	Preallocated int    // number of preallocated segments
	Room         int64  // bytes that can be appended without new disk space
	Reserved     int64  // bytes of Room that are reserved
}

// Stats returns the statistics of the log.
func (l *Log) Stats() Stats {
	s := Stats{Segments: len(l.sealed) + len(l.open), Reserved: l.reserved.Load()}
	s.Preallocated, s.Room = int(l.pool.count.Load()), l.room()
	for _, seg := range l.sealed {
		s.Bytes += seg.End
	}
	for _, seg := range l.open {
		s.Bytes += seg.end
	}
	if len(l.open) > 0 {
		s.Oldest, s.Current = l.open[0].sequence, l.Current()
	}
	if len(l.sealed) > 0 {
		s.Oldest = l.sealed[0].Sequence
	}
	return s
}

// Current returns the sequence of the segment to which records are appended, or 0 if
// there is none.
func (l *Log) Current() uint64 {
	if active := l.active(); active != nil {
		return active.sequence
	}
	return 0
}

// Err returns the error that put the log into the failed state, or the error of a failed
// [Target.Sync], which the next Flush returns. It is nil if there is no error.
func (l *Log) Err() error {
	switch {
	case l.err != nil:
		return l.err
	case len(l.open) > 0:
		return l.open[0].failure()
	}
	return nil
}

// Sealed returns the sealed segments, oldest first. The log never changes the elements of
// the slice, and the caller must not change them.
func (l *Log) Sealed() []Segment { return l.sealed }

// active returns the segment to which records are appended, or nil.
func (l *Log) active() *segment {
	if len(l.open) == 0 {
		return nil
	}
	return l.open[len(l.open)-1]
}

// Oldest returns the oldest sealed segment; ok is false if there is none.
func (l *Log) Oldest() (s Segment, ok bool) {
	if len(l.sealed) == 0 {
		return Segment{}, false
	}
	return l.sealed[0], true
}

// Close seals all segments, removes segments that are not needed, keeps the preallocated
// ones that the reservations need, and releases the lock. In the failed state it returns
// the error of the failure, and records that were not synced can be lost. No goroutine
// must be calling [Log.Prepare] or [Target.Sync].
func (l *Log) Close() error {
	if l.err == ErrClosed {
		return ErrClosed
	}
	l.reader.Close()
	if l.lock == nil {
		l.err = ErrClosed
		return nil
	}
	var err error
	if l.recovery == nil {
		err = l.Seal()
		l.noteDurable()
		err = cmp.Or(err, l.pool.removeDeletable())
	}
	for _, s := range l.open {
		s.closeFile() // only a failed log has open segments here
	}
	if l.healing != nil {
		l.healing.failed.closeFile()
	}
	err = errors.Join(err, l.pool.removeExcept(l.reserved.Load()))
	l.err = ErrClosed
	return errors.Join(err, l.lock.Close())
}

// Seal seals all segments. It appends the last closing record after all earlier records
// are durable, so that this record also proves the records of the last sync. If that
// fails, only the proof is missing. The next record starts a segment.
func (l *Log) Seal() error {
	if err := l.Flush(); err != nil {
		return err
	}
	if len(l.open) > 0 {
		if err := l.Sync(); err != nil {
			return err
		}
		l.open[0].close()
		if err := l.Flush(); err != nil {
			return err
		}
		return l.sealFirst()
	}
	return nil
}
