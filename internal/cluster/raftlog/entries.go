package raftlog

import (
	"errors"
	"slices"
	"sort"

	"github.com/beanpole-mq/beanpole/internal/wal"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// add adds an entry whose record is at pos. It removes the entries that this entry
// overrides.
func (l *memory) add(e *raftpb.Entry, pos wal.Pos) {
	index := e.GetIndex()
	if index <= l.last.Index {
		l.override(index)
	}
	l.newest = append(l.newest, kept{e, pos})
	l.bytes += int64(len(e.GetData()))
	l.last = Position{Index: index, Term: e.GetTerm()}
	if n := len(l.terms); n == 0 || l.terms[n-1].Term != e.GetTerm() {
		l.terms = append(l.terms, l.last)
	}
	l.remember(index, pos)
	if e.GetType() != raftpb.EntryNormal {
		l.confs = append(l.confs, index)
	}
}

// remember stores the offset of an entry, unless it is near the last stored offset.
func (l *memory) remember(index uint64, pos wal.Pos) {
	if n := len(l.offsets); n == 0 || l.offsets[n-1].pos.Segment != pos.Segment || pos.Offset-l.offsets[n-1].pos.Offset >= offsetEvery {
		l.offsets = append(l.offsets, offset{index, pos})
	}
}

// override removes the entries starting with index.
func (l *memory) override(index uint64) {
	if len(l.newest) > 0 && index >= l.newest[0].GetIndex() {
		keep := index - l.newest[0].GetIndex()
		for _, e := range l.newest[keep:] {
			l.bytes -= int64(len(e.GetData()))
		}
		l.newest = slices.Delete(l.newest, int(keep), len(l.newest))
	} else {
		l.newest, l.bytes = nil, 0
	}
	l.terms = l.terms[:sort.Search(len(l.terms), func(i int) bool { return l.terms[i].Index >= index })]
	l.offsets = l.offsets[:sort.Search(len(l.offsets), func(i int) bool { return l.offsets[i].index >= index })]
	l.confs = slices.DeleteFunc(l.confs, func(i uint64) bool { return i >= index })
}

// note records that a segment contains a record, and the index of the record's entry, if
// any.
func (l *memory) note(pos wal.Pos, index uint64) {
	if n := len(l.segments); n == 0 || l.segments[n-1].sequence < pos.Segment {
		l.segments = append(l.segments, segment{sequence: pos.Segment})
	}
	s := &l.segments[len(l.segments)-1]
	s.highest = max(s.highest, index)
}

// highestOf returns the highest index of a segment, or 0 if it has no entries.
func (l *memory) highestOf(sequence uint64) uint64 {
	for _, s := range l.segments {
		if s.sequence == sequence {
			return s.highest
		}
	}
	return 0
}

// cutAt removes the entries up to at. If the log ends before at, or has another entry
// with that index, the log is then empty and starts after at.
func (l *memory) cutAt(at Position) {
	i := sort.Search(len(l.terms), func(i int) bool { return l.terms[i].Index > at.Index })
	if at.Index >= l.last.Index || i > 0 && l.terms[i-1].Term != at.Term {
		l.begin(at)
	}
	if first := l.firstRecent(); at.Index >= first {
		l.drop(int(at.Index - first + 1))
	}
	// The run and the offset that cover the first remaining entry stay, even if they
	// start before it.
	for len(l.terms) > 1 && l.terms[1].Index <= at.Index+1 {
		l.terms = l.terms[1:]
	}
	for len(l.offsets) > 1 && l.offsets[1].index <= at.Index+1 {
		l.offsets = l.offsets[1:]
	}
	l.confs = slices.DeleteFunc(l.confs, func(i uint64) bool { return i <= at.Index })
	l.state.Cut = at
}

// begin empties the log: its first entry will follow after.
func (l *memory) begin(after Position) {
	l.newest, l.bytes, l.terms, l.offsets, l.confs = nil, 0, nil, nil, nil
	l.last = after
}

// forget drops the oldest entries from memory while their data exceeds Options.Recent. It
// keeps the entries whose records are not entirely in sealed segments. A record is
// entirely in sealed segments if the next entry's record starts in a sealed segment. All
// appended records must be flushed.
func (l *Log) forget() {
	l.sealed = l.wal.Sealed()
	open := l.wal.Current() // 0 after Open: all segments are sealed
	n, bytes := 0, l.bytes
	for ; bytes > l.recent && (open == 0 || n+1 < len(l.newest) && l.newest[n+1].pos.Segment < open); n++ {
		bytes -= int64(len(l.newest[n].GetData()))
	}
	l.drop(n)
}

// drop drops the oldest n entries from memory. It does not copy entries: the next append
// that exceeds the capacity of newest moves the remaining ones. Therefore, the cost of an
// append does not depend on the number of entries in memory.
func (l *memory) drop(n int) {
	for _, e := range l.newest[:n] {
		l.bytes -= int64(len(e.GetData()))
	}
	clear(l.newest[:n])
	l.newest = l.newest[n:]
}

// InitialState implements [raft.Storage].
func (l *Log) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.Hard, l.state.Roles, nil
}

// FirstIndex implements [raft.Storage].
func (l *Log) FirstIndex() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.Cut.Index + 1, nil
}

// LastIndex implements [raft.Storage].
func (l *Log) LastIndex() (uint64, error) {
	return l.Last().Index, nil
}

// ConfChanges returns the indexes of the entries that change the configuration.
func (l *Log) ConfChanges() []uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.confs)
}

// Snapshot implements [raft.Storage]. It always fails, because the log does not contain
// snapshots; the caller provides them.
func (l *Log) Snapshot() (*raftpb.Snapshot, error) {
	return nil, raft.ErrSnapshotTemporarilyUnavailable
}

// Term implements [raft.Storage].
func (l *Log) Term(index uint64) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term(index)
}

func (l *memory) term(index uint64) (uint64, error) {
	switch {
	case index < l.state.Cut.Index:
		return 0, raft.ErrCompacted
	case index == l.state.Cut.Index:
		return l.state.Cut.Term, nil
	case index > l.last.Index:
		return 0, raft.ErrUnavailable
	}
	return l.terms[runOf(l.terms, index)].Term, nil
}

// runOf returns the index of the last run that starts at or before index. There must be
// such a run. A run is a sequence of entries with the same term.
func runOf(terms []Position, index uint64) int {
	return sort.Search(len(terms), func(i int) bool { return terms[i].Index > index }) - 1
}

// Has reports whether an entry is in the log, or was cut. For an entry before Cut, it
// reports whether the entry can have been in the log.
func (l *Log) Has(at Position) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	term, err := l.term(at.Index)
	return err == raft.ErrCompacted || err == nil && term == at.Term
}

// Entries implements [raft.Storage]. It returns at least one entry, and more only if they
// fit into maxSize bytes of data and headers.
func (l *Log) Entries(lo, hi, maxSize uint64) ([]*raftpb.Entry, error) {
	l.mu.Lock()
	entries, err := l.recently(lo, hi, maxSize)
	var older sealedEntries
	if err == errSealed {
		older = l.older(lo)
		hi = min(hi, l.firstRecent())
	}
	l.mu.Unlock()
	if err != errSealed {
		return entries, err
	}
	entries, err = older.read(l.wal.NewReader(older.sealed), lo, hi, maxSize)
	if first, _ := l.FirstIndex(); err != nil && lo < first { // a cut has removed the segment
		return nil, raft.ErrCompacted
	}
	if err != nil {
		return nil, &ReadError{err}
	}
	return entries, nil
}

// errSealed means that entries are in sealed segments, and not in memory.
var errSealed = errors.New("raftlog: not in memory")

// recently returns the entries from lo up to, but not including, hi that fit into maxSize
// bytes. The error is errSealed if the first of them is not in memory.
func (l *memory) recently(lo, hi, maxSize uint64) ([]*raftpb.Entry, error) {
	switch first := l.firstRecent(); {
	case lo <= l.state.Cut.Index:
		return nil, raft.ErrCompacted
	case hi > l.last.Index+1:
		return nil, raft.ErrUnavailable
	case lo < first:
		return nil, errSealed
	default:
		newest := l.newest[lo-first : hi-first]
		n := 0
		for size := uint64(0); n < len(newest); n++ {
			if size += sizeOf(newest[n].Entry); size > maxSize && n > 0 {
				break
			}
		}
		entries := make([]*raftpb.Entry, n) // without spare capacity, because Raft can append to the slice
		for i := range entries {
			entries[i] = newest[i].Entry
		}
		return entries, nil
	}
}

// firstRecent returns the index of the first entry in memory. If there is none, it
// returns the index of the next entry to be appended.
func (l *memory) firstRecent() uint64 {
	if len(l.newest) > 0 {
		return l.newest[0].GetIndex()
	}
	return l.last.Index + 1
}

// sizeOf returns the approximate size of an entry, in bytes.
func sizeOf(e *raftpb.Entry) uint64 { return uint64(len(e.GetData())) + 24 }

// A ReadError is an error of reading entries that are in the log. Raft's core panics with
// it.
type ReadError struct{ err error }

func (e *ReadError) Error() string { return e.err.Error() }
func (e *ReadError) Unwrap() error { return e.err }

// sealedEntries is a snapshot of the entries in sealed segments. Writers of the log do
// not change it.
type sealedEntries struct {
	sealed []wal.Segment
	from   wal.Pos // at or before the record of the first entry
	terms  []Position
}

// older returns the entries in sealed segments, starting with the index from.
func (l *memory) older(from uint64) sealedEntries {
	i := sort.Search(len(l.offsets), func(i int) bool { return l.offsets[i].index > from }) - 1
	return sealedEntries{l.sealed, l.offsets[max(i, 0)].pos, slices.Clone(l.terms[runOf(l.terms, from):])}
}

// read reads the entries from lo up to, but not including, hi that fit into maxSize
// bytes.
func (s *sealedEntries) read(r *wal.Reader, lo, hi, maxSize uint64) ([]*raftpb.Entry, error) {
	defer r.Close()
	var entries []*raftpb.Entry
	var size uint64
	for next, at := lo, s.from; next < hi; {
		after, done, err := r.Read(at, offsetEvery, func(r wal.Record) error {
			if r.Payload[0] != kindEntry || next == hi {
				return nil
			}
			e, err := decodeEntry(r.Payload)
			// An overridden entry, or an entry before lo, has another index or term.
			if err != nil || e.GetIndex() != next || e.GetTerm() != s.terms[runOf(s.terms, next)].Term {
				return err
			}
			if size += sizeOf(e); size > maxSize && len(entries) > 0 {
				hi = next
				return nil
			}
			entries = append(entries, e)
			next++
			return nil
		})
		if err != nil {
			return nil, err
		}
		if at = after; done {
			if at = (wal.Pos{Segment: r.After(after.Segment)}); at.Segment == 0 {
				break
			}
		}
	}
	if len(entries) == 0 {
		return nil, raft.ErrUnavailable
	}
	return entries, nil
}
