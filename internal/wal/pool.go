package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A pool preallocates segments and keeps them until the owner needs them.
type pool struct {
	// Constant after Open.
	fs      vfs.FS
	dir     string
	size    int64 // size of a segment
	log     uint64
	created int64

	room     atomic.Int64 // sum of usable; written with mu held
	count    atomic.Int64 // number of preallocated segments; written with mu held
	prepared atomic.Bool  // the next segment is filled with zeros

	// mu is also held while a file is created.
	mu           vfs.WorkLock
	preallocated []*segment // by sequence
	next         uint64     // sequence of the next segment to create

	removals removals // has its own lock
}

// path returns the path of a segment's file.
func (p *pool) path(sequence uint64) string { return filepath.Join(p.dir, FileName(sequence)) }

// capacity returns the number of bytes of records that fit into a segment.
func (p *pool) capacity() int64 { return p.size - overhead }

// usable returns the room in a preallocated segment.
func (p *pool) usable() int64 { return usable(p.capacity()) }

// isLow reports whether the room exceeds the reservations by less than one segment.
func (p *pool) isLow(reserved int64) bool { return p.room.Load() < reserved+p.usable() }

// list sets the preallocated segments. The caller holds mu.
func (p *pool) list(segments []*segment) {
	p.preallocated = segments
	p.count.Store(int64(len(segments)))
	p.room.Store(int64(len(segments)) * p.usable())
	p.prepared.Store(len(segments) > 0 && segments[0].filled)
}

// grow creates at least one segment, and enough segments for the given room. If it fails,
// it has created none.
func (p *pool) grow(room int64) error {
	if room > p.usable() { // avoids filling the disk only to fail
		if free, err := p.fs.Free(p.dir); err == nil && free < room {
			return fmt.Errorf("wal: create segments: %d bytes are free, %d are needed: %w", free, room, syscall.ENOSPC)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.preallocated)
	for ; room > 0; room -= p.usable() {
		if err := p.addLocked(); err != nil {
			_ = p.shrink(before)
			return err
		}
	}
	return nil
}

// shrink deletes the newest spare segments until only keep segments remain. The caller
// holds mu. The removals need not be durable: the next start removes files that remain.
func (p *pool) shrink(keep int) (err error) {
	for _, s := range p.preallocated[keep:] {
		err = errors.Join(err, removeFile(p.fs, s.name))
	}
	p.list(slices.Clone(p.preallocated[:keep]))
	return err
}

func (p *pool) addLocked() error {
	if p.next > MaxSequence {
		return ErrNoSequence
	}
	s := newSegment(p.path(p.next), header{log: p.log, sequence: p.next, created: p.created, size: p.size})
	err := p.create(s)
	used := err == nil
	if !used { // a file that the log did not create, or could not remove, uses up its name
		there, failed := vfs.Exists(p.fs, s.name)
		used = there || failed != nil
	}
	if used {
		p.next++
	}
	if errors.Is(err, syscall.ENOSPC) && p.removals.pending.Load() && p.removeDeletable() == nil {
		return p.addLocked() // only once, because no removal is pending now
	}
	if err != nil {
		return fmt.Errorf("wal: create segment: %w", err)
	}
	p.list(append(p.preallocated, s))
	return nil
}

// create creates the file of a segment. After an error, there is no file. It never
// changes an existing file.
func (p *pool) create(s *segment) (err error) {
	if s.file, err = p.fs.Create(s.name); err != nil {
		return err // if a file exists despite the error, it is empty, and the next start removes it
	}
	if err = s.file.Preallocate(s.size); err == nil {
		_, err = s.file.WriteAt(s.header.encode(), 0)
	}
	if err == nil {
		err = s.file.Sync()
	}
	if err == nil {
		err = p.fs.SyncDir(p.dir)
	}
	s.file.Close() // all data is synced, so an error does not matter
	s.file = nil
	if err != nil {
		_ = removeFile(p.fs, s.name)
	}
	return err
}

// acquire removes and returns the next n spare segments. If fewer than n are available,
// it removes none and returns false.
func (p *pool) acquire(n int) ([]*segment, bool) {
	if n == 0 {
		return nil, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.preallocated) < n {
		return nil, false
	}
	taken := p.preallocated[:n:n]
	p.list(p.preallocated[n:])
	return taken, true
}

// putBack returns segments that were acquired and not written. They are older than all
// others in the pool.
func (p *pool) putBack(segments []*segment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range segments {
		s.reset()
	}
	p.list(slices.Concat(segments, p.preallocated))
}

// trim removes segments if there are at least two more than the reservations need. It
// does nothing while another goroutine creates a file.
func (p *pool) trim(reserved int64) {
	if !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	if need := int(reserved/p.usable()) + 2; len(p.preallocated) > need {
		_ = p.shrink(need)
	}
}

// removeExcept removes the newest preallocated segments that are not needed for the given
// room.
func (p *pool) removeExcept(room int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	need := (room + p.usable() - 1) / p.usable()
	return p.shrink(int(min(need, int64(len(p.preallocated)))))
}

// adopt puts a file of an earlier process into the pool if it is usable, because other
// programs might have filled the rest of the disk.
func (p *pool) adopt(f *segmentInfo) bool {
	switch {
	case !f.isOf(p.log):
		return false
	case f.size != p.size || f.header.size != p.size || f.sequence < p.next || f.sequence > MaxSequence:
		return false
	}
	file, err := p.fs.OpenWrite(f.path)
	if err != nil {
		return false
	}
	// A copied file can have holes. The process that created it might not have synced the
	// header.
	_, err = file.WriteAt(f.header.encode(), 0)
	if err := errors.Join(err, file.Preallocate(f.size), file.Sync(), file.Close()); err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list(append(p.preallocated, newSegment(f.path, f.header)))
	p.next = f.sequence + 1
	return true
}

// After fallocate, the first write to each block changes structures of the file system,
// which makes syncs slower. Therefore the pool fills the next segment with zeros before
// it is used. BenchmarkPreallocation has the figures. On systems other than Linux,
// Preallocate itself writes the zeros.
const (
	fillsZeros = runtime.GOOS == "linux"
	fillSlice  = defaultBlockSize
)

var zeros [fillSlice]byte

// fill fills the next segment with zeros, in slices, so that the owner can use the pool
// in between. It has its own handle of the file: the owner's handle reports the errors of
// records that the owner writes during the sync.
func (p *pool) fill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.preallocated) == 0 || p.preallocated[0].filled {
		return nil
	}
	s := p.preallocated[0]
	s.filled = true // even after an error: another attempt is not worthwhile
	p.list(p.preallocated)
	if !fillsZeros {
		return nil
	}
	f, err := p.fs.OpenWrite(s.name)
	if err != nil {
		return fmt.Errorf("wal: %w", err)
	}
	defer f.Close()
	isNext := true
	for off := int64(headerSize); off < s.size && err == nil && isNext; off += fillSlice {
		_, err = f.WriteAt(zeros[:min(fillSlice, s.size-off)], off)
		p.mu.Unlock()
		p.mu.Lock()
		isNext = len(p.preallocated) > 0 && p.preallocated[0] == s
	}
	if err == nil && isNext {
		p.mu.Unlock()
		err = f.Sync()
		p.mu.Lock()
	}
	return err
}

// removeFile removes a file if it exists.
func removeFile(fsys vfs.FS, name string) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
