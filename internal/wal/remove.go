package wal

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// An obsolete segment is not needed any more. Its file is removed when the record
// removedBy, which says that, is durable.
type obsolete struct {
	sequence  uint64
	removedBy Pos
}

// A successor is the name of the next segment, which is to be written after the
// closing record that ends at a position.
type successor struct {
	at   Pos
	next uint64
}

// oldest returns the sequence of the oldest segment that is needed. next is that of a
// segment which is about to begin.
func (l *Log) oldest(next uint64) uint64 {
	switch {
	case l.healing != nil && len(l.obsolete) > 0:
		next = l.obsolete[0].sequence // until rewrite has written what comes in the place of its records
	case len(l.sealed) > 0:
		next = l.sealed[0].Sequence
	case len(l.open) > 0:
		next = l.open[0].sequence
	}
	return max(next, l.removed)
}

// RemoveOldest appends a record that the oldest sealed segment is not needed any more.
// [Log.Prepare] removes the file when that record is durable; a crash before may bring the
// segment back. RemoveOldest also removes preallocated segments that are not needed.
//
// Like Append it needs room, and changes nothing if there is none.
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
	because := s.append(pointer|internalBit, pointTo(kindOldest, l.oldest(s.sequence)))
	l.obsolete = append(l.obsolete, obsolete{oldest, because})
	l.pool.trim(l.reserved.Load())
	return nil
}

// RemovalPending returns the position of the last record that removes a segment; ok is
// false if no file waits for such a record.
func (l *Log) RemovalPending() (at Pos, ok bool) {
	l.noteDurable()
	if len(l.obsolete) == 0 {
		return Pos{}, false
	}
	return l.obsolete[len(l.obsolete)-1].removedBy, true
}

// SuccessorPending reports whether the name of a segment waits for its beginning to become
// durable.
func (l *Log) SuccessorPending() bool {
	l.noteDurable()
	return len(l.successors) > 0
}

// noteDurable gives Prepare the successors and removals whose records are durable now.
func (l *Log) noteDurable() {
	if len(l.obsolete) == 0 && len(l.successors) == 0 {
		return
	}
	durable := l.Durable()
	n := 0
	for n < len(l.obsolete) && l.obsolete[n].removedBy.Compare(durable) < 0 {
		n++
	}
	m := 0
	for m < len(l.successors) && (Pos{l.successors[m].next, headerSize}).Compare(durable) < 0 {
		m++
	}
	if n+m == 0 {
		return
	}
	l.pool.chores.add(l.obsolete[:n], l.successors[:m])
	l.obsolete = slices.Delete(l.obsolete, 0, n)
	l.successors = slices.Delete(l.successors, 0, m)
}

// chores are what Prepare does besides making segments.
type chores struct {
	pending atomic.Bool

	mu         sync.Mutex
	successors []successor
	remove     []uint64 // sequences, oldest first
	holds      int      // of those who copy files, and want none of them removed
	doing      sync.Mutex
}

// hold keeps files from being removed until release is called.
func (c *chores) hold() (release func()) {
	c.doing.Lock() // a removal that is under way ends first
	defer c.doing.Unlock()
	change := func(n int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.holds += n
		c.note()
	}
	change(1)
	return sync.OnceFunc(func() { change(-1) })
}

// note says whether there is anything to do. The caller holds mu.
func (c *chores) note() {
	c.pending.Store(len(c.successors) > 0 || len(c.remove) > 0 && c.holds == 0)
}

func (c *chores) add(obsolete []obsolete, names []successor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.successors = append(c.successors, names...)
	for _, r := range obsolete {
		c.remove = append(c.remove, r.sequence)
		// A segment that is removed need not name its successor.
		c.successors = slices.DeleteFunc(c.successors, func(m successor) bool { return m.at.Segment == r.sequence })
	}
	c.note()
}

// finish removes a chore that was done.
func (c *chores) finish(m successor, remove uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.successors = slices.DeleteFunc(c.successors, func(other successor) bool { return other == m })
	c.remove = slices.DeleteFunc(c.remove, func(other uint64) bool { return other == remove })
	c.note()
}

// doChores writes successors and removes files, and returns the first error. It makes each
// removal durable before the next: if a power cut brought back an older file than one that
// is gone, the log would look damaged.
func (p *pool) doChores() (err error) {
	c := &p.chores
	c.doing.Lock()
	defer c.doing.Unlock()
	c.mu.Lock()
	names, remove := slices.Clone(c.successors), slices.Clone(c.remove)
	if c.holds > 0 {
		remove = nil
	}
	c.mu.Unlock()
	for _, m := range names {
		if e := p.writeSuccessor(m); e != nil {
			err = cmp.Or(err, e)
			continue
		}
		c.finish(m, 0)
	}
	for _, sequence := range remove {
		if e := p.removeSegment(sequence); e != nil {
			return cmp.Or(err, e)
		}
		c.finish(successor{}, sequence)
	}
	return err
}

// removeSegment removes the file of a segment.
func (p *pool) removeSegment(sequence uint64) error {
	path := p.path(sequence)
	err := removeFile(p.fs, path)
	if err == nil {
		err = p.fs.SyncDir(p.dir)
	}
	if err != nil {
		return fmt.Errorf("wal: remove segment: %w", err)
	}
	return nil
}

// writeSuccessor writes the name of the next segment after a closing record. There is
// room for it in the file. If a crash tears it, the log counts as without it.
func (p *pool) writeSuccessor(m successor) error {
	path := p.path(m.at.Segment)
	f, err := p.fs.OpenWrite(path)
	if err != nil {
		return fmt.Errorf("wal: name the next segment: %w", err)
	}
	seed := header{log: p.log, sequence: m.at.Segment}.seed()
	b := appendRecord(nil, seed, m.at.Offset, m.at.Offset, pointer|internalBit, pointTo(kindNext, m.next))
	err = longEnough(f, m.at.Offset)
	if err == nil {
		_, err = f.WriteAt(b, m.at.Offset)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("wal: name the next segment: %w", err)
	}
	return nil
}
