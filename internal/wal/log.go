package wal

import (
	"cmp"
	"errors"
	"io"
	"sync/atomic"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// Errors of a log that is not ready. What the file system says is wrapped.
var (
	ErrClosed    = errors.New("wal: the log is closed")
	ErrReadOnly  = errors.New("wal: the log was opened for reading only")
	ErrNotRead   = errors.New("wal: the log must be replayed before it is written")
	ErrTooLarge  = errors.New("wal: the record is too large")
	ErrNotSealed = errors.New("wal: no such sealed segment")

	// ErrNoSequence is returned when the log has had MaxSequence segments: its
	// records must be written to a new log.
	ErrNoSequence = errors.New("wal: the log has had as many segments as it can")
)

// Defaults and limits of [Options].
const (
	DefaultSegmentSize = 10 << 20
	MinSegmentSize     = 512
	MaxSegmentSize     = 1 << 30
)

// Options of a log. The zero value works.
type Options struct {
	// SegmentSize is the size of a segment file in bytes; 0 means
	// DefaultSegmentSize. It is rounded to between MinSegmentSize and
	// MaxSegmentSize, and up to a multiple of 8. Existing segments keep theirs.
	SegmentSize int64

	// Parallel is about how many blocks Replay checks and decodes at a time; 0 means
	// GOMAXPROCS.
	Parallel int

	// ReadOnly opens a log to read it: nothing is locked or changed. If a server
	// writes the log meanwhile, its end looks torn.
	ReadOnly bool

	// Progress, if not nil, is called by Replay now and then, in the caller's
	// goroutine.
	Progress func(done, total int64)

	// LogID marks the segments of a new log; 0 means a random number. A log
	// that has segments keeps its own.
	LogID uint64

	// Created is a time in nanoseconds since 1970, which is written to the headers of
	// segments, for people to read.
	Created int64

	blockSize int // of reading, for tests; 0 means defaultBlockSize
}

// A Log is an open log. Its methods are for one goroutine, the owner, except
// [Log.Prepare], [Log.NeedsPrepare] and [Log.NewReader].
type Log struct {
	// Static after Open.
	fs   vfs.FS
	dir  string
	opt  Options
	lock io.Closer // nil if read only

	pool pool // has its own lock

	// reserved is the sum of all reservations. The owner writes it,
	// Prepare reads it.
	reserved atomic.Int64

	// The rest belongs to the owner.

	err      error      // why nothing can be appended now; nil if all is well
	scan     *scan      // what Open found, until Replay has read it
	sealed   []Segment  // oldest first; elements never change, as readers share them
	open     []*segment // the current one and those planned to follow it
	prev     Pos        // where the last sealed segment that counts ends
	obsolete []obsolete // segments that are not needed; their files go when that is durable
	buf      []byte     // for the next segment
	healing  *healing   // what Recover has to do; nil if nothing
	reader   Reader     // of ReadSealed

	noRoom    error // why Reserve could not make room for noRoomFor bytes; nil if it may try
	noRoomFor int64
	removed   uint64 // older segments than this were removed, though a crash may have brought them back
}

// A Segment is a sealed segment.
type Segment struct {
	Sequence uint64
	End      int64 // offset at which its records end; 0 if it is void
}

// Stats describe a log.
type Stats struct {
	Oldest       uint64 // sequence of the oldest segment; 0 if there is none
	Current      uint64 // sequence of the segment that is written; 0 if there is none yet
	Segments     int    // sealed and current ones
	Bytes        int64  // used in them
	Preallocated int    // segments made ahead of time
	Room         int64  // bytes that can surely be appended without new space on the disk
	Reserved     int64  // bytes of Room that are reserved
}

// Stats returns numbers about the log.
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

// Current returns the sequence of the segment that records are appended to, or 0 if there
// is none.
func (l *Log) Current() uint64 {
	if tip := l.tip(); tip != nil {
		return tip.sequence
	}
	return 0
}

// Err returns the error that put the log into its failed state, or that of a failed
// [Target.Sync], which the next Flush will report; nil if there is none.
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
// the slice, and neither must the caller.
func (l *Log) Sealed() []Segment { return l.sealed }

// tip returns the segment that records are appended to, or nil.
func (l *Log) tip() *segment {
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

// Close seals all segments, removes those that are not needed, keeps as many preallocated
// ones as the reservations need, and releases the lock. In the failed state it returns the
// error of that, and what was not synced may be lost. No goroutine may be in [Log.Prepare]
// or [Target.Sync].
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
	if l.scan == nil {
		err = l.Seal()
		l.noteDurable()
		err = cmp.Or(err, l.pool.removeObsolete())
	}
	for _, s := range l.open {
		s.closeFile() // after finish there are some only in a failed log
	}
	if l.healing != nil && l.healing.failed != nil {
		l.healing.failed.closeFile()
	}
	err = errors.Join(err, l.pool.removeExcept(l.reserved.Load()))
	l.err = ErrClosed
	return errors.Join(err, l.lock.Close())
}

// Seal seals all segments. It appends the last closing record when all before it is
// durable: so the record proves those of the last sync, too, which no other record does.
// If that fails only the proof is lost. The next record begins a segment.
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
