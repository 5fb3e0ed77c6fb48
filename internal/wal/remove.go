package wal

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
)

// What must be there is written in the log itself, so that a segment which gets
// lost is missed. The oldest one that is needed is named by each link and, when
// that changes in between, by a record; a file is removed when that is durable.
// The next one is named behind the closing record of each segment, when the link
// of the next is durable.

// A retired segment is not needed any more. Its file goes when because, a record
// which says that, is durable.
type retired struct {
	sequence  uint64
	removedBy Pos
}

// A successor is to be written behind the closing record that ends at a position: the
// name of the next segment.
type successor struct {
	at   Pos
	next uint64
}

// oldest returns the sequence of the oldest segment that is needed, next being
// that of one about to begin.
func (l *Log) oldest(next uint64) uint64 {
	switch {
	case len(l.sealed) > 0:
		return l.sealed[0].Sequence
	case len(l.open) > 0:
		return l.open[0].sequence
	}
	return next
}

// RemoveOldest removes the oldest sealed segment, which the caller no longer
// needs, and appends a record that says so. The file goes some time after that
// record has become durable, in [Log.Prepare]. Until then a crash may bring the
// segment back, with all that are newer. Spares that are not needed any more go
// with it.
//
// Like an Append it needs room, and changes nothing if there is none. The current
// segment is never removed.
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
	l.reader.closeIfReading(oldest)
	l.sealed = slices.Delete(l.sealed, 0, 1)
	because := s.append(pointer|internalBit, pointTo(kindOldest, l.oldest(s.sequence)))
	l.retired = append(l.retired, retired{oldest, because})
	l.pool.trim(l.reserved.Load())
	return nil
}

// RemovalPending returns where the last record is that removes a segment whose file is
// waiting for it to be durable; ok is false if none is.
func (l *Log) RemovalPending() (at Pos, ok bool) {
	l.noteDurable()
	if len(l.retired) == 0 {
		return Pos{}, false
	}
	return l.retired[len(l.retired)-1].removedBy, true
}

// SuccessorPending reports whether a segment is to be named in the one before, when its
// beginning is durable.
func (l *Log) SuccessorPending() bool {
	l.noteDurable()
	return len(l.successors) > 0
}

// noteDurable hands over to Prepare what has waited until something was durable.
func (l *Log) noteDurable() {
	if len(l.retired) == 0 && len(l.successors) == 0 {
		return
	}
	durable := l.Durable()
	n := 0
	for n < len(l.retired) && l.retired[n].removedBy.Compare(durable) < 0 {
		n++
	}
	m := 0
	for m < len(l.successors) && (Pos{l.successors[m].next, headerSize}).Compare(durable) < 0 {
		m++
	}
	if n+m == 0 {
		return
	}
	l.pool.chores.add(l.retired[:n], l.successors[:m])
	l.retired = slices.Delete(l.retired, 0, n)
	l.successors = slices.Delete(l.successors, 0, m)
}

// chores are what Prepare does beside making spares.
type chores struct {
	pending atomic.Bool

	mu         sync.Mutex
	successors []successor
	remove     []uint64 // sequences, oldest first
	doing      sync.Mutex
}

func (c *chores) add(retired []retired, marks []successor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.successors = append(c.successors, marks...)
	for _, r := range retired {
		c.remove = append(c.remove, r.sequence)
		// Nobody will miss what follows a segment that goes.
		c.successors = slices.DeleteFunc(c.successors, func(m successor) bool { return m.at.Segment == r.sequence })
	}
	c.pending.Store(len(c.successors)+len(c.remove) > 0)
}

// finish drops what was done.
func (c *chores) finish(m successor, remove uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.successors = slices.DeleteFunc(c.successors, func(other successor) bool { return other == m })
	c.remove = slices.DeleteFunc(c.remove, func(other uint64) bool { return other == remove })
	c.pending.Store(len(c.successors)+len(c.remove) > 0)
}

// doChores marks and removes what is waiting for it, and returns the first error.
// Segments go one after the other, and each durably: a log from whose middle a
// power cut took a file looks damaged.
func (p *pool) doChores() (err error) {
	if p.stolen.Load() {
		return nil
	}
	c := &p.chores
	c.doing.Lock()
	defer c.doing.Unlock()
	c.mu.Lock()
	marks, remove := slices.Clone(c.successors), slices.Clone(c.remove)
	c.mu.Unlock()
	for _, m := range marks {
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

func (p *pool) removeSegment(sequence uint64) error {
	err := removeFile(p.fs, filepath.Join(p.dir, FileName(sequence)))
	if err == nil {
		err = p.fs.SyncDir(p.dir)
	}
	if err != nil {
		return fmt.Errorf("wal: remove segment: %w", err)
	}
	return nil
}

// writeSuccessor writes the name of the next segment behind a closing record. There is room
// for it in the file. Should a crash tear it, it says nothing.
func (p *pool) writeSuccessor(m successor) error {
	path := filepath.Join(p.dir, FileName(m.at.Segment))
	f, err := p.fs.OpenWrite(path)
	if err != nil {
		return fmt.Errorf("wal: mark segment: %w", err)
	}
	seed := header{log: p.log, sequence: m.at.Segment}.seed()
	b := current.appendRecord(nil, seed, m.at.Offset, m.at.Offset, pointer|internalBit, pointTo(kindNext, m.next))
	_, err = f.WriteAt(b, m.at.Offset)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("wal: mark segment: %w", err)
	}
	return nil
}
