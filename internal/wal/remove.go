package wal

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// A deletable segment is no longer needed. Its file can be removed when the record at
// removedBy, which marks the segment as deletable, is durable.
type deletable struct {
	sequence  uint64
	removedBy Pos
}

// oldest returns the sequence of the oldest segment that is needed. next is the sequence
// of the segment that is about to start.
func (l *Log) oldest(next uint64) uint64 {
	switch {
	case l.healing != nil && len(l.deletable) > 0:
		next = l.deletable[0].sequence // until rewrite has written the copies of its records
	case len(l.sealed) > 0:
		next = l.sealed[0].Sequence
	case len(l.open) > 0:
		next = l.open[0].sequence
	}
	return max(next, l.removed)
}

// RemoveOldest appends a record that marks the oldest sealed segment as no longer needed.
// [Log.Prepare] removes the file when that record is durable; an earlier crash can
// restore the segment. RemoveOldest also removes preallocated segments that are not
// needed.
//
// Like Append, it needs room, and changes nothing if there is none.
func (l *Log) RemoveOldest() error {
	if err := l.writable(); err != nil {
		return err
	}
	if len(l.sealed) == 0 {
		return ErrNotSealed
	}
	s, err := l.makeRoom(Cost(pointer))
	if err != nil {
		return err
	}
	oldest := l.sealed[0].Sequence
	if l.reader.sequence == oldest {
		l.reader.Close()
	}
	l.sealed = l.sealed[1:]
	because := s.append(pointer|internalBit, pointToOldest(l.oldest(s.sequence)))
	l.deletable = append(l.deletable, deletable{oldest, because})
	l.pool.trim(l.reserved.Load())
	return nil
}

// RemovalPending returns the position of the last record that removes a segment. ok is
// false if no file waits for its removal.
func (l *Log) RemovalPending() (at Pos, ok bool) {
	l.noteDurable()
	if len(l.deletable) == 0 {
		return Pos{}, false
	}
	return l.deletable[len(l.deletable)-1].removedBy, true
}

// noteDurable gives Prepare the removals whose records have become durable.
func (l *Log) noteDurable() {
	if len(l.deletable) == 0 {
		return
	}
	durable := l.Durable()
	n := 0
	for n < len(l.deletable) && l.deletable[n].removedBy.Compare(durable) < 0 {
		n++
	}
	if n == 0 {
		return
	}
	l.pool.removals.add(l.deletable[:n])
	l.deletable = slices.Delete(l.deletable, 0, n)
}

// removals are the segments whose files Prepare removes.
type removals struct {
	pending atomic.Bool

	mu    sync.Mutex
	queue []uint64 // sequences, oldest first
	pins  int      // copies in progress; no file is removed during a copy
	doing sync.Mutex
}

// pin keeps files from being removed until release is called.
func (r *removals) pin() (release func()) {
	r.doing.Lock() // waits for a removal in progress
	defer r.doing.Unlock()
	r.change(func() { r.pins++ })
	return sync.OnceFunc(func() { r.change(func() { r.pins-- }) })
}

// change changes queue or pins.
func (r *removals) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	r.pending.Store(len(r.queue) > 0 && r.pins == 0)
}

func (r *removals) add(deletable []deletable) {
	r.change(func() {
		for _, o := range deletable {
			r.queue = append(r.queue, o.sequence)
		}
	})
}

// removeDeletable removes the files in the queue. It makes each removal durable before
// the next one, because if a power failure restored an older file than a removed one, the
// log would look damaged.
func (p *pool) removeDeletable() error {
	r := &p.removals
	r.doing.Lock()
	defer r.doing.Unlock()
	for r.pending.Load() {
		r.mu.Lock()
		sequence := r.queue[0]
		r.mu.Unlock()
		err := removeFile(p.fs, p.path(sequence))
		if err == nil {
			err = p.fs.SyncDir(p.dir)
		}
		if err != nil {
			return fmt.Errorf("wal: remove segment: %w", err)
		}
		r.change(func() { r.queue = r.queue[1:] })
	}
	return nil
}
