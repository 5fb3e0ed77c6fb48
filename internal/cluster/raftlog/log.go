package raftlog

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
	"go.etcd.io/raft/v3/raftpb"
)

// Options configures a Log. The zero value is valid.
type Options struct {
	SegmentSize int64 // in bytes; 0 means 16 MiB
	Recent      int64 // maximum size of entries in memory, in bytes; 0 means 32 MiB
	LogID       uint64
	ReadOnly    bool // as in wal.Options
}

// A Log stores the entries and the State of a member. The package comment lists the
// goroutines that can call its methods.
type Log struct {
	recent      int64 // Options.Recent
	segmentSize int64 // Options.SegmentSize

	// A writer holds owner, even while it waits for the disk. It also holds mu for each
	// change of memory. A reader holds only mu, so it never waits for a writer's disk
	// access.
	owner     vfs.WorkLock // guards the wal, except its syncs and readers, and scratch
	preparing vfs.WorkLock // held by Prepare
	wal       *wal.Log
	scratch   []byte
	reserved  bool // space for a Cut is reserved; see reserveForCut

	mu     sync.Mutex // locked after owner
	memory            // guarded by mu
}

// A memory is the in-memory state of the log. Callers of its methods hold mu or, to read,
// owner.
type memory struct {
	state State
	last  Position // the newest entry, or Cut

	// Invariants:
	//  1. newest holds consecutive entries up to last.Index; the first is newest[0].
	//  2. terms has the term of each entry after Cut: the term of the last run that begins at or
	//     below its index.
	//  3. offsets ascend by index and by position. The records of the entries from offsets[i].index
	//     to offsets[i+1].index-1 are at or after offsets[i].pos, as far as they are not overridden.
	//  4. segments ascend. Each entry whose record is in a segment has an index of at most
	//     the segment's highest.
	//  5. The whole record of an entry that is not in newest is in sealed, unless a cut has
	//     removed its segment.
	newest   []kept
	bytes    int64 // size of the data in newest
	terms    []Position
	offsets  []offset
	confs    []uint64 // indexes of entries that change the configuration
	segments []segment
	sealed   []wal.Segment // wal.Log.Sealed at the last forget
}

// A kept is an entry in memory with the position of its record.
type kept struct {
	*raftpb.Entry
	pos wal.Pos
}

// An offset is the position of an entry's record.
type offset struct {
	index uint64
	pos   wal.Pos
}

// A segment describes a segment of the wal.
type segment struct {
	sequence uint64
	highest  uint64 // highest index of its entries; 0 if it has none
}

const (
	defaultSegmentSize = 16 << 20
	defaultRecent      = 32 << 20
	offsetEvery        = 256 << 10 // approximate number of bytes of a segment between two stored offsets
)

// Open opens the log in a directory, which must exist, or starts a new log there. If the
// log is damaged, the error is a [*wal.CorruptError].
func Open(fsys vfs.FS, dir string, opt Options) (*Log, error) {
	l := &Log{recent: opt.Recent, owner: vfs.NewWorkLock(), preparing: vfs.NewWorkLock()}
	if l.recent == 0 {
		l.recent = defaultRecent
	}
	if opt.SegmentSize == 0 {
		opt.SegmentSize = defaultSegmentSize
	}
	l.segmentSize = opt.SegmentSize
	l.state.Hard, l.state.Roles = hardState(0, 0, 0), new(raftpb.ConfState)
	var err error
	l.wal, err = wal.Open(fsys, dir, wal.Options{SegmentSize: opt.SegmentSize, LogID: opt.LogID, ReadOnly: opt.ReadOnly})
	if err != nil {
		return nil, err
	}
	_, err = wal.Replay(l.wal, decodeBlock, l.restore)
	if err == nil && len(l.terms) > 0 && l.terms[0].Index > l.state.Cut.Index+1 {
		err = fmt.Errorf("%w: %d to %d", errMissing, l.state.Cut.Index+1, l.terms[0].Index-1)
	}
	if err != nil {
		l.wal.Close()
		return nil, err
	}
	l.forget()
	return l, nil
}

// IsDamage reports whether an error of Open means that the log is damaged: bytes have
// changed, or files are missing.
func IsDamage(err error) bool { return errors.Is(err, wal.ErrCorrupt) || errors.Is(err, errMissing) }

// IsFull reports whether an error means that the disk has no space for the log.
func IsFull(err error) bool { return wal.NoRoom(err) }

// errMissing is wrapped by the error for a log that lacks entries in its middle.
var errMissing = errors.New("raftlog: entries are missing")

// A decoded is a decoded record: an entry, or the payload of a record of another kind.
type decoded struct {
	pos     wal.Pos
	entry   *raftpb.Entry
	payload []byte
}

func decodeBlock(records []wal.Record) ([]decoded, error) {
	block := make([]decoded, len(records))
	for i, r := range records {
		block[i] = decoded{pos: r.Pos}
		if r.Payload[0] != kindEntry {
			block[i].payload = r.Payload
			continue
		}
		e, err := decodeEntry(r.Payload)
		if err != nil {
			return nil, fmt.Errorf("%w at %v", err, r.Pos)
		}
		block[i].entry = e
	}
	return block, nil
}

func (l *Log) restore(block []decoded) error {
	for _, d := range block {
		if d.entry == nil {
			if err := decodeState(&l.state, d.payload); err != nil {
				return err
			}
			l.note(d.pos, 0)
			if d.payload[0] == kindState {
				l.cutAt(l.state.Cut)
			}
			continue
		}
		l.note(d.pos, d.entry.GetIndex())
		if d.entry.GetIndex() <= l.state.Cut.Index {
			continue
		}
		if d.entry.GetIndex() > l.last.Index+1 {
			// The segments with the entries in between were removed. Therefore, a cut
			// must follow.
			l.begin(Position{Index: d.entry.GetIndex() - 1})
		}
		l.add(d.entry, d.pos)
	}
	l.forget()
	return nil
}

// Frees reports whether a Cut at index would remove a segment.
func (l *Log) Frees(index uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return index > l.state.Cut.Index && len(l.segments) > 1 && l.segments[0].highest <= index
}

// Beyond returns the approximate index of the last entry that is not among the newest
// bytes of the log.
func (l *Log) Beyond(bytes int64) (index uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := int(bytes / l.segmentSize)
	for i := 0; i < len(l.segments)-1-kept; i++ {
		index = max(index, l.segments[i].highest)
	}
	return index
}

// Sync makes all appended data durable.
func (l *Log) Sync() error {
	l.owner.Lock()
	target := l.wal.Target()
	l.owner.Unlock()
	return target.Sync()
}

// Recover tries to end the failed state after an error of Append or Sync; see
// [wal.Log.Recover]. If it succeeds, all appended data is durable.
func (l *Log) Recover() error {
	l.owner.Lock()
	defer l.owner.Unlock()
	l.wal.RetryRoom()
	if l.wal.Flush() == nil && l.wal.Sync() == nil {
		return nil
	}
	moved := map[wal.Pos]wal.Pos{}
	if err := l.wal.Recover(func(from, to wal.Pos, _ []byte) {
		moved[from] = to
		l.update(func() { l.note(to, l.highestOf(from.Segment)) })
	}); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.offsets = slices.DeleteFunc(l.offsets, func(p offset) bool { _, ok := moved[p.pos]; return ok })
	for i := range l.newest {
		if to, ok := moved[l.newest[i].pos]; ok {
			l.newest[i].pos = to
			l.remember(l.newest[i].GetIndex(), to)
		}
	}
	return nil
}

// Prepare creates segments in advance and removes unneeded ones; see [wal.Log.Prepare].
// Any goroutine can call it.
func (l *Log) Prepare() error {
	if !l.wal.NeedsPrepare() {
		return nil
	}
	l.preparing.Lock()
	defer l.preparing.Unlock()
	return l.wal.Prepare()
}

// Close flushes and closes the log.
func (l *Log) Close() error {
	l.owner.Lock()
	defer l.owner.Unlock()
	return l.wal.Close()
}

// State returns everything except the entries. The caller must not change its maps and
// slices.
func (l *Log) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// Last returns the newest entry.
func (l *Log) Last() Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}
