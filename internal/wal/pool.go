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

// A pool makes segments ahead of time, and keeps them until the owner needs them.
type pool struct {
	// Static after Open.
	fs    vfs.FS
	dir   string
	size  int64 // the usual size of a segment
	log   uint64
	stamp func() int64

	room     atomic.Int64 // sum of usable over the segments of the usual size; written with mu held
	count    atomic.Int64 // of preallocated segments; written with mu held
	prepared atomic.Bool  // the next segment of the usual size is filled with zeros

	// mu is held while a file is made, too.
	mu           vfs.WorkLock
	preallocated []*segment    // by sequence
	next         uint64        // sequence of the next segment to make
	claims       map[int64]int // size of a large segment -> number of reservations

	chores chores // has its own lock
}

func (p *pool) usable() int64 { return p.size - overhead - smallFor(p.size) + alignment }

// list changes which segments are preallocated. The caller holds mu.
func (p *pool) list(segments []*segment) {
	p.preallocated = segments
	p.count.Store(int64(len(segments)))
}

// add makes a preallocated segment.
func (p *pool) add(size int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addLocked(size)
}

// maxInTheWay is how many files with the names of the next segments addLocked
// skips. The log did not make them: next is larger than the sequences of its own.
const maxInTheWay = 1000

func (p *pool) addLocked(size int64) error {
	s := &segment{size: size, end: headerSize, mu: vfs.NewWorkLock()}
	s.flushed.Store(headerSize)
	s.synced.Store(headerSize)
	err := fs.ErrExist
	for n := 0; n < maxInTheWay && errors.Is(err, fs.ErrExist); n++ {
		if p.next > MaxSequence {
			return ErrNoSequence
		}
		s.name, s.named = filepath.Join(p.dir, FileName(p.next)), p.next
		s.header = header{log: p.log, sequence: p.next, created: p.stamp(), size: size}
		err = p.create(s)
		// The sequence is used up if there is a file with that name, also one that was in the
		// way or could not be removed.
		if _, gone := p.fs.Size(s.name); err == nil || !errors.Is(gone, fs.ErrNotExist) {
			p.next++
		}
	}
	if errors.Is(err, syscall.ENOSPC) && p.chores.pending.Load() && p.doChores() == nil {
		return p.addLocked(size) // once: nothing is pending now
	}
	if err != nil {
		return fmt.Errorf("wal: make segment: %w", err)
	}
	p.list(append(p.preallocated, s))
	if size == p.size {
		p.room.Add(p.usable())
	}
	return nil
}

// create makes the file of a segment, or none. It never touches a file that exists.
func (p *pool) create(s *segment) (err error) {
	if s.file, err = p.fs.Create(s.name); err != nil {
		return err // if there is a file in spite of the error, it is empty, and the next start removes it
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
	s.file.Close() // all is synced, so an error does not matter
	s.file = nil
	if err != nil {
		_ = removeFile(p.fs, s.name)
	}
	return err
}

// acquire returns a preallocated segment, which the owner is going to write. It has
// the usual size, or is a large one of that size or a little more, because a record
// may be smaller than its reservation. acquire returns nil if there is none that is
// not claimed. Sequences must grow, so the segments before it get new ones; it also
// returns nil if none are left. Their files are renamed when they are written.
func (p *pool) acquire(size int64) *segment {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := -1
	for k, s := range p.preallocated {
		switch {
		case size == p.size && s.size == size:
			if i < 0 {
				i = k
			}
		case size != p.size && s.size >= size && p.countSize(s.size) > p.claims[s.size]:
			if i < 0 || s.size < p.preallocated[i].size {
				i = k
			}
		}
	}
	if i < 0 {
		return nil
	}
	if p.next+uint64(i) > MaxSequence+1 {
		return nil
	}
	s := p.preallocated[i]
	for _, skipped := range p.preallocated[:i] {
		skipped.sequence = p.next
		p.next++
	}
	p.list(slices.Concat(p.preallocated[i+1:], p.preallocated[:i]))
	p.uncount(s)
	return s
}

// uncount corrects the counts after s was removed from the pool.
func (p *pool) uncount(s *segment) {
	if s.size == p.size {
		p.room.Add(-p.usable())
		p.prepared.Store(p.firstUsual() != nil && p.firstUsual().filled)
	}
}

func (p *pool) firstUsual() *segment {
	for _, s := range p.preallocated {
		if s.size == p.size {
			return s
		}
	}
	return nil
}

// putBack puts segments back into the pool that were acquired and not written. They
// are older than all others there.
func (p *pool) putBack(segments []*segment) {
	for _, s := range segments {
		s.clearFailure() // before p.mu is taken: syncZeros takes s.mu first
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range segments {
		s.reset()
		if s.size == p.size {
			p.room.Add(p.usable())
		}
	}
	p.list(slices.Concat(segments, p.preallocated))
}

// countSize counts the preallocated segments of a size.
func (p *pool) countSize(size int64) int {
	n := 0
	for _, s := range p.preallocated {
		if s.size == size {
			n++
		}
	}
	return n
}

// claim reserves a large segment.
func (p *pool) claim(size int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.countSize(size) <= p.claims[size] {
		if err := p.addLocked(size); err != nil {
			return err
		}
	}
	if p.claims == nil {
		p.claims = make(map[int64]int)
	}
	p.claims[size]++
	return nil
}

// ensureClaims makes the large segments that are claimed, if they were removed.
func (p *pool) ensureClaims() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for size, n := range p.claims {
		for p.countSize(size) < n {
			if err := p.addLocked(size); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *pool) unclaim(size int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.claims[size]--; p.claims[size] <= 0 {
		delete(p.claims, size)
	}
}

// trim removes large segments that are not claimed, and one of the usual size if
// there are two more than the reservations need. The removal need not be durable. While a file is made it does nothing: there is a
// next time.
func (p *pool) trim(reserved int64) {
	if !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	excess := 0
	if p.room.Load() >= reserved+3*p.usable() {
		excess = 1
	}
	for i := len(p.preallocated) - 1; i >= 0; i-- {
		s := p.preallocated[i]
		switch {
		case s.size == p.size && excess > 0:
			excess--
		case s.size != p.size && p.countSize(s.size) > p.claims[s.size]:
		default:
			continue
		}
		p.list(slices.Concat(p.preallocated[:i], p.preallocated[i+1:]))
		p.uncount(s)
		_ = p.remove(s) // if it fails, the next start removes the file
	}
}

func (p *pool) remove(s *segment) error {
	s.closeFile()
	return removeFile(p.fs, s.name)
}

// removeAll removes all preallocated segments.
func (p *pool) removeAll() error { return p.removeExcept(0) }

// removeExcept removes preallocated segments, the newest ones first, as long as the
// others have so much room. It closes the others.
func (p *pool) removeExcept(room int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	var kept []*segment
	have := int64(0)
	for _, s := range p.preallocated {
		if s.size == p.size && s.named == s.sequence && have < room {
			have += p.usable()
			s.closeFile()
			s.file = nil
			kept = append(kept, s)
			continue
		}
		errs = append(errs, p.remove(s))
	}
	p.list(kept)
	p.room.Store(have)
	p.prepared.Store(false)
	return errors.Join(errs...)
}

// adopt puts a file that an earlier process has left into the pool, if it is usable.
// Its space may be all that is left on a disk that others have filled.
func (p *pool) adopt(f *found) bool {
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
	// A file that was copied may have holes. The process that made it may have ended before the
	// header was durable, or may have failed to sync it.
	_, err = file.WriteAt(f.header.encode(), 0)
	if err := errors.Join(err, file.Preallocate(f.size), file.Sync(), file.Close()); err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &segment{name: f.path, named: f.sequence, header: f.header, size: f.size, end: headerSize, mu: vfs.NewWorkLock()}
	s.flushed.Store(headerSize)
	s.synced.Store(headerSize)
	p.list(append(p.preallocated, s))
	p.room.Add(p.usable())
	p.next = f.sequence + 1
	return true
}

// When a file was only extended by fallocate, each first write to a block changes
// structures of the file system, which makes syncs slower. So the next segment is
// filled with zeros before it is used. BenchmarkPreallocation has the figures. On
// other systems than Linux, Preallocate itself writes the zeros.
const (
	fillsZeros = runtime.GOOS == "linux"
	fillSlice  = defaultBlockSize
)

var zeros [fillSlice]byte

// fill opens the next segment of the usual size and fills it with zeros. It works in
// slices, so that the owner can use the pool in between.
func (p *pool) fill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.firstUsual()
	if s == nil {
		return nil
	}
	err := s.open(p.fs)
	if errors.Is(err, fs.ErrNotExist) { // somebody has removed or cut it
		p.list(slices.DeleteFunc(slices.Clone(p.preallocated), func(other *segment) bool { return other == s }))
		p.uncount(s)
		_ = p.remove(s)
	}
	if err != nil {
		return err
	}
	if fillsZeros && !s.filled {
		for off := int64(headerSize); off < s.size && err == nil; off += fillSlice {
			_, err = s.file.WriteAt(zeros[:min(fillSlice, s.size-off)], off)
			p.mu.Unlock()
			p.mu.Lock()
			if p.firstUsual() != s {
				return err // the owner has acquired it
			}
		}
		if err == nil {
			err = p.syncZeros(s)
		}
	}
	s.filled = true // even after an error: it does not pay to try again
	p.prepared.Store(p.firstUsual() != nil && p.firstUsual().filled)
	return err
}

// syncZeros makes the zeros of fill durable. The caller holds p.mu; syncZeros unlocks
// it meanwhile.
//
// An error does not matter as long as the segment is in the pool, because the zeros
// are not relied on. But if the owner has acquired the segment meanwhile, the error may
// concern records, and the kernel reports it only once. If the file is closed by then,
// the owner has sealed the segment, with a sync of its own, or removed it.
func (p *pool) syncZeros(s *segment) error {
	name := s.name
	p.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.file.Sync()
	p.mu.Lock()
	if err == nil || errors.Is(err, fs.ErrClosed) {
		return nil
	}
	err = fmt.Errorf("wal: sync %s: %w", name, err)
	if !slices.Contains(p.preallocated, s) {
		s.failLocked(err)
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
