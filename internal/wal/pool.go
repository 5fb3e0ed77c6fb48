package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A pool makes and keeps the spares.
type pool struct {
	// Static after Open.
	fs    vfs.FS
	dir   string
	size  int64 // of the usual spare
	log   uint64
	stamp func() int64

	room     atomic.Int64 // sum of usable of the usual spares; written with mu held
	prepared atomic.Bool  // the first usual spare is filled with zeros
	stolen   atomic.Bool  // the directory is another process's: nothing is made or removed

	mu           sync.Mutex
	preallocated []*segment    // by sequence
	next         uint64        // sequence of the next spare
	claims       map[int64]int // file size of a large spare -> how many are reserved

	chores chores // has its own lock
}

func (p *pool) usable() int64 { return p.size - overhead - smallFor(p.size) + alignment }

func (p *pool) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.preallocated)
}

// A preallocatedFile is what the file of a spare was called.
type preallocatedFile struct {
	*segment
	name  string
	named uint64
}

// list names the first spares.
func (p *pool) list(limit int) (names []preallocatedFile) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.preallocated[:min(limit, len(p.preallocated))] {
		names = append(names, preallocatedFile{s, s.name, s.named})
	}
	return names
}

// has reports whether a segment is a spare, and its file still has that sequence.
func (p *pool) has(s *segment, named uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.preallocated, s) && s.named == named
}

// add makes a spare.
func (p *pool) add(size int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addLocked(size)
}

// maxInTheWay is how many files with the names of the next segments addLocked
// passes over. They are not ours: ours are counted in next.
const maxInTheWay = 1000

func (p *pool) addLocked(size int64) error {
	if p.stolen.Load() {
		return vfs.ErrLocked
	}
	s := &segment{size: size, end: headerSize}
	s.flushed.Store(headerSize)
	s.synced.Store(headerSize)
	err := fs.ErrExist
	for n := 0; n < maxInTheWay && errors.Is(err, fs.ErrExist); n++ {
		if p.next > MaxSequence {
			return ErrNoSequence
		}
		s.name, s.named = filepath.Join(p.dir, FileName(p.next)), p.next
		s.header = header{log: p.log, sequence: p.next, created: p.stamp(), size: size}
		// Whatever happens, the sequence is used up: a file that could not be
		// removed may be in the way.
		p.next++
		err = p.create(s)
	}
	if errors.Is(err, syscall.ENOSPC) && p.chores.pending.Load() && p.doChores() == nil {
		return p.addLocked(size) // once: nothing is pending now
	}
	if err != nil {
		return fmt.Errorf("wal: make segment: %w", err)
	}
	p.preallocated = append(p.preallocated, s)
	if size == p.size {
		p.room.Add(p.usable())
	}
	return nil
}

// create makes the file of a spare, or none. A file that is there already stays.
func (p *pool) create(s *segment) (err error) {
	if s.file, err = p.fs.Create(s.name); err != nil {
		return err // should it be there all the same, the next start removes it: it is empty
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
	s.file.Close() // what it could complain about is synced
	s.file = nil
	if err != nil {
		_ = removeFile(p.fs, s.name)
	}
	return err
}

// acquire removes a spare from the pool for the owner to write: one of the usual
// size, or a large one of that size or a little more, for a record may turn out
// smaller than its reservation. It returns nil if there is none that is not
// claimed, or no sequence is left for those before it. The ones before it get new sequences, for sequences only grow; their
// files follow when they are written.
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
	p.preallocated = append(p.preallocated[i+1:], p.preallocated[:i]...)
	p.uncount(s)
	return s
}

// uncount corrects the counts after s is gone from spares.
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

// putBack returns segments that were taken and not written, the oldest ones
// of all.
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
	p.preallocated = append(slices.Clone(segments), p.preallocated...)
}

// countSize counts the spares of a size.
func (p *pool) countSize(size int64) int {
	n := 0
	for _, s := range p.preallocated {
		if s.size == size {
			n++
		}
	}
	return n
}

// claim reserves a large spare.
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

// ensureClaims makes the large spares that are claimed, if they were given up.
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

// trim removes spares: large ones that nobody claims, and one of the usual size
// if there are two more than the reservations need. That they are gone need not
// be durable.
func (p *pool) trim(reserved int64) {
	p.mu.Lock()
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
		p.preallocated = slices.Delete(p.preallocated, i, i+1)
		p.uncount(s)
		_ = p.remove(s) // it will be removed at the next start
	}
}

func (p *pool) remove(s *segment) error {
	s.closeFile()
	if p.stolen.Load() {
		return nil
	}
	return removeFile(p.fs, s.name)
}

// removeAll removes all spares.
func (p *pool) removeAll() error { return p.removeExcept(0) }

// removeExcept removes the spares that are not needed to have so much room, from the
// newest on, and closes the others.
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
	p.preallocated = kept
	p.room.Store(have)
	p.prepared.Store(false)
	return errors.Join(errs...)
}

// adopt makes a file that an earlier process left a spare again, if it can be one.
// Its space may be all that there is on a disk that others have filled.
func (p *pool) adopt(f *found) bool {
	switch {
	case f.headerErr != nil || f.layout != current || f.header.log != p.log || f.header.sequence != f.sequence:
		return false
	case f.size != p.size || f.header.size != p.size || f.sequence < p.next || f.sequence > MaxSequence:
		return false
	}
	file, err := p.fs.OpenWrite(f.path)
	if err != nil {
		return false
	}
	// A file that was copied may have holes.
	if err := errors.Join(file.Preallocate(f.size), file.Close()); err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &segment{name: f.path, named: f.sequence, header: f.header, size: f.size, end: headerSize}
	s.flushed.Store(headerSize)
	s.synced.Store(headerSize)
	p.preallocated = append(p.preallocated, s)
	p.room.Add(p.usable())
	p.next = f.sequence + 1
	return true
}

// Space that is reserved by fallocate only costs the file system a change of
// its own structures with each write to it. So the next spare is written once
// before it is used. BenchmarkPreallocation has the figures. Elsewhere than on
// Linux Preallocate itself writes the zeros.
const (
	fillsZeros = runtime.GOOS == "linux"
	fillSlice  = defaultBlockSize
)

// fill opens the first spare of the usual size, and fills it with zeros, in
// slices, so that the owner can have the pool in between.
func (p *pool) fill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.firstUsual()
	if s == nil {
		return nil
	}
	err := s.open(p.fs)
	if err != nil {
		return err
	}
	if fillsZeros && !s.filled {
		for off := int64(headerSize); off < s.size && err == nil; off += fillSlice {
			_, err = s.file.WriteAt(zeros[:min(fillSlice, s.size-off)], off)
			p.mu.Unlock()
			p.mu.Lock()
			if p.firstUsual() != s {
				return err // it is being written already
			}
		}
		if err == nil {
			err = p.syncZeros(s)
		}
	}
	s.filled = true // or there is no use in trying again
	p.prepared.Store(p.firstUsual() != nil && p.firstUsual().filled)
	return err
}

// syncZeros makes the blocks durable that fill wrote. Callers hold p.mu, which
// is free meanwhile.
//
// A failure does not matter to a spare: nobody relies on the zeros. But should
// the owner have taken the segment in the meantime it may concern records, and
// the kernel reports it only once. If the file is closed by then, the owner has
// sealed the segment, with a sync of its own, or removed the spare.
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
