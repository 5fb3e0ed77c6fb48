package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A segment is a file that this process created. It is preallocated, then planned (it has
// records in memory), then written, then sealed.
//
//	0      base      synced      flushed       end       size
//	|-------|----------|------------|-----------|----------|
//	        |<-------------- buf -------------->|
//	        |  durable | in the file|           | space
//
// S1. base <= synced <= flushed <= end <= size, and all are starts of records. S2. buf
// has the bytes from base to end. S3. end + closingSize <= size, until the closing record
// is appended.
type segment struct {
	file vfs.File // nil until the first write

	// Owned by the pool while preallocated, then by the owner.
	name string // path of the file
	header
	filled bool // filled with zeros, or the attempt has failed

	// Owned by the owner.
	seed         uint32
	base         int64
	end          int64
	closed       bool  // the last record is the closing one
	continues    Pos   // start of the record whose fragment is the first record in this segment
	continuation int64 // end of that record in this segment, or 0 if there is none
	buf          []byte

	flushed atomic.Int64 // written by the owner, read by goroutines that sync

	// mu is held during a sync. The file is closed only with mu held. Any goroutine reads
	// synced; it is written with mu held.
	mu     vfs.WorkLock
	synced atomic.Int64
	failed atomic.Pointer[error] // the error after which the file cannot be trusted beyond synced
}

func newSegment(name string, h header) *segment {
	s := &segment{name: name, header: h, end: headerSize, mu: vfs.NewWorkLock()}
	s.flushed.Store(headerSize)
	s.synced.Store(headerSize)
	return s
}

// free returns the number of bytes of records that can still be appended.
func (s *segment) free() int64 { return s.size - closingSize - s.end }

// begin makes a preallocated segment the successor of the segment that ends at prev.
func (s *segment) begin(prev Pos, oldest uint64, buf []byte) {
	s.seed = s.header.seed()
	s.base = headerSize
	s.buf = link{s.log, prev, oldest}.appendTo(buf[:0], s.seed)
	s.end = s.base + int64(len(s.buf))
}

// close appends the closing record.
func (s *segment) close() {
	s.append(1|internalBit, []byte{kindClosing})
	s.closed = true
}

// reset undoes begin for a segment that was not written.
func (s *segment) reset() {
	s.buf, s.base, s.end, s.closed = nil, 0, headerSize, false
	s.continues, s.continuation = Pos{}, 0
}

// append appends a record that fits. n is the length of its payload, with
// internalBit if the record is internal.
func (s *segment) append(n uint32, parts ...[]byte) Pos {
	pos := Pos{s.sequence, s.end}
	s.buf = appendRecord(s.buf, s.seed, s.end, s.synced.Load(), n, parts...)
	s.end = s.base + int64(len(s.buf))
	return pos
}

// flush writes the records that were appended since the last flush.
func (s *segment) flush() error {
	s.discardDurable()
	flushed := s.flushed.Load()
	if flushed == s.end {
		return nil
	}
	if _, err := s.file.WriteAt(s.buf[flushed-s.base:], flushed); err != nil {
		err = fmt.Errorf("wal: write %s: %w", s.name, err)
		s.fail(err)
		return err
	}
	s.flushed.Store(s.end)
	return nil
}

// discardDurable removes durable bytes from buf when they are the larger part, so that it
// moves each byte only a few times.
func (s *segment) discardDurable() {
	durable := s.synced.Load() - s.base
	if durable*2 < int64(len(s.buf)) || durable == 0 {
		return
	}
	s.buf = s.buf[:copy(s.buf, s.buf[durable:])]
	s.base += durable
}

// ErrLost reports that another process has removed or truncated a log file in use:
// records that were durable are lost.
var ErrLost = errors.New("the file was removed or cut while it was open")

// lost returns an error that wraps ErrLost if the file was removed or is shorter than
// when it was created.
func (s *segment) lost() error {
	size, named, err := s.file.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("wal: stat %s: %w", s.name, err)
	case !named || size < s.size:
		return fmt.Errorf("wal: %s: %w", FileName(s.sequence), ErrLost)
	}
	return nil
}

// open opens the file, if it is not open. Before the first write, it checks that the file
// still exists: a write could go to a removed file, or restore the length of a truncated
// file without its header.
func (s *segment) open(fsys vfs.FS) error {
	if s.file == nil {
		f, err := fsys.OpenWrite(s.name)
		if errors.Is(err, fs.ErrNotExist) {
			err = ErrLost
		}
		if err != nil {
			return fmt.Errorf("wal: open segment: %w", err)
		}
		s.file = f
	}
	if s.flushed.Load() > headerSize {
		return nil
	}
	return s.lost()
}

// closeFile closes the file, if it is open.
func (s *segment) closeFile() {
	if s.file != nil {
		s.file.Close()
	}
}

// fail records that the file cannot be trusted beyond synced, which no longer changes:
// fail waits for a running sync, and no sync follows. The first error counts.
func (s *segment) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failLocked(err)
}

func (s *segment) failLocked(err error) { s.failed.CompareAndSwap(nil, &err) }

// failure returns the error after which the file cannot be trusted beyond synced, or nil.
func (s *segment) failure() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// sync makes the segment durable at least up to an offset, which must be flushed. Several
// goroutines can call it. After another goroutine's sync, often no work is left.
func (s *segment) sync(upTo int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.synced.Load() >= upTo {
		return nil
	}
	if err := s.failure(); err != nil {
		return err
	}
	return s.syncLocked()
}

func (s *segment) syncLocked() error {
	flushed := s.flushed.Load()
	err := s.file.Sync()
	if err != nil {
		err = fmt.Errorf("wal: sync %s: %w", s.name, err)
	} else {
		err = s.lost()
	}
	if err != nil {
		s.failLocked(err)
		return err
	}
	s.synced.Store(flushed)
	return nil
}

// seal makes a complete segment durable, then truncates the file to the length of its
// records and closes it. It truncates only after the sync. Therefore, a file that is
// shorter than its header states has a closing record, or is damaged.
func (s *segment) seal() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failure(); err != nil {
		return err
	}
	if err := s.syncLocked(); err != nil {
		return err
	}
	if s.end < s.size {
		if err := s.file.Truncate(s.end); err != nil {
			s.failLocked(fmt.Errorf("wal: seal %s: %w", s.name, err))
			return s.failure()
		}
	}
	s.file.Close() // all data is synced, so an error does not matter
	return nil
}

// truncate tries to remove the part of a failed segment beyond synced, and closes the
// file. No start reads that part. The file keeps its length, because a shorter file looks
// damaged.
func (s *segment) truncate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return
	}
	synced := s.synced.Load()
	if s.file.Truncate(synced) == nil && s.file.Truncate(s.size) == nil {
		_ = s.file.Sync()
	}
	s.file.Close()
}
