package raftlog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
	"go.etcd.io/raft/v3/raftpb"
)

// Options of a log. The zero value works.
type Options struct {
	SegmentSize int64 // in bytes; 0 means 16 MiB. As wal.Options
	Recent      int64 // bytes of entries that stay in memory; 0 means 32 MiB
	LogID       uint64
	Stamp       func() int64 // as wal.Options
	ReadOnly    bool         // as wal.Options
}

// A Log keeps the entries and the State of a member. See the package comment for who
// may call what.
type Log struct {
	recent      int64 // Options.Recent
	segmentSize int64 // Options.SegmentSize

	// owner is held by who writes, while the disk works, too, and mu besides for each change of what is in memory. So
	// whoever has either may read that, and those who have mu only never wait for the disk.
	owner     vfs.WorkLock // over the wal, but for its syncs, and scratch
	preparing vfs.WorkLock // held by Prepare
	wal       *wal.Log
	scratch   []byte
	aside     bool // room for a Cut is reserved; see setAside

	mu    sync.Mutex // over all below; locked after owner
	state State
	last  Position // the newest entry, or Cut

	// Invariants:
	//  1. newest holds consecutive entries up to last.Index; the first is newest[0].
	//  2. terms has the term of each entry after Cut: that of the last run which begins at or below it.
	//  3. offsets ascend by index and by position. The records of the entries from offsets[i].index
	//     to offsets[i+1].index-1 are at or after offsets[i].pos, as far as they are not overridden.
	//  4. segments ascend. Each entry whose record is in one has an index of at most its highest.
	//  5. An entry that is not in newest is in a sealed segment.
	newest   []kept
	bytes    int64 // of the data of newest
	terms    []Position
	offsets  []offset
	confs    []uint64 // indexes of entries that change the configuration
	segments []segment
}

// A kept is an entry in memory, and where its record is.
type kept struct {
	*raftpb.Entry
	pos wal.Pos
}

// An offset is where the record of an entry is.
type offset struct {
	index uint64
	pos   wal.Pos
}

// A segment is what an earlier or the present segment of the wal holds.
type segment struct {
	sequence uint64
	highest  uint64 // index of its entries; 0 if it has none
}

const (
	defaultSegmentSize = 16 << 20
	defaultRecent      = 32 << 20
	offsetEvery        = 256 << 10 // bytes of a segment from one remembered offset to the next
)

// Found is what Open found beside the State.
type Found struct {
	// Torn says that the end of the log was cut off: most likely a write that was under way
	// when the power failed.
	Torn bool
}

// Open opens the log in a directory, which must exist, or begins one.
// Damage is a [*wal.CorruptError].
func Open(fsys vfs.FS, dir string, opt Options) (*Log, Found, error) {
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
	l.wal, err = wal.Open(fsys, dir, wal.Options{SegmentSize: opt.SegmentSize, LogID: opt.LogID, Stamp: opt.Stamp, ReadOnly: opt.ReadOnly})
	if err != nil {
		return nil, Found{}, err
	}
	report, err := wal.Replay(l.wal, decodeBlock, l.restore)
	if err == nil && len(l.terms) > 0 && l.terms[0].Index > l.state.Cut.Index+1 {
		err = fmt.Errorf("%w: those from %d to %d", errMissing, l.state.Cut.Index+1, l.terms[0].Index-1)
	}
	if err != nil {
		l.wal.Close()
		return nil, Found{}, err
	}
	var found Found
	for _, t := range report.Torn {
		found.Torn = found.Torn || !t.Closed
	}
	l.forget()
	return l, found, nil
}

// IsDamage reports whether an error of Open means that the log is damaged, whatever is done about the disk: by bytes that have changed,
// and by files that are missing.
func IsDamage(err error) bool { return errors.Is(err, wal.ErrCorrupt) || errors.Is(err, errMissing) }

// IsFull reports whether an error means that the disk has no room for the log.
func IsFull(err error) bool { return wal.NoRoom(err) }

// errMissing is wrapped by the error of a log that has lost entries in its middle.
var errMissing = errors.New("raftlog: entries are missing")

// A decoded is a record: an entry, or the payload of one of another kind.
type decoded struct {
	pos     wal.Pos
	size    int64
	entry   *raftpb.Entry
	payload []byte
}

func decodeBlock(records []wal.Record) ([]decoded, error) {
	block := make([]decoded, len(records))
	for i, r := range records {
		block[i] = decoded{pos: r.Pos, size: wal.Cost(len(r.Payload))}
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
			if d.payload[0] == kindMembership {
				l.cutAt(l.state.Cut)
			}
			continue
		}
		l.note(d.pos, d.entry.GetIndex())
		if d.entry.GetIndex() <= l.state.Cut.Index {
			continue
		}
		if d.entry.GetIndex() > l.last.Index+1 {
			// The segments of the entries between were removed: there must be a cut after them.
			l.begin(Position{Index: d.entry.GetIndex() - 1})
		}
		l.add(d.entry, d.pos)
	}
	l.forget()
	return nil
}

// Append appends entries, and the hard state if it is not nil, and hands them to the
// system. Entries of an index that is there override it and all above.
//
// After an error of this and of the other methods that write, the log needs Recover; then
// the same call again does what is left of it.
func (l *Log) Append(hard *raftpb.HardState, entries []*raftpb.Entry) error {
	l.owner.Lock()
	defer l.owner.Unlock()
	if err := l.setAside(); err != nil {
		return err
	}
	for _, e := range entries {
		if e.GetIndex() <= l.state.Cut.Index || e.GetIndex() > l.last.Index+1 {
			panic(fmt.Sprintf("raftlog: entry %d appended to a log from %d to %d", e.GetIndex(), l.state.Cut.Index, l.last.Index))
		}
		pos, err := l.append(appendEntry(l.scratch[:0], e), e.GetData())
		if err != nil {
			return err
		}
		l.update(func() {
			l.add(e, pos)
			l.note(pos, e.GetIndex())
		})
	}
	next, payloads := l.state, [][]byte(nil)
	if hard != nil {
		next.Hard, payloads = hard, [][]byte{appendHard(nil, hard)}
	}
	if err := l.change(next, payloads...); err != nil {
		return err
	}
	l.update(l.forget)
	return nil
}

// SetMembership records who the members are, and their roles.
func (l *Log) SetMembership(m Membership) error {
	l.owner.Lock()
	defer l.owner.Unlock()
	next := l.state
	next.Membership = m
	return l.change(next, appendMembership(l.scratch[:0], &next))
}

// Start records another start of the member, under a name that is random.
func (l *Log) Start(name uint64) error {
	l.owner.Lock()
	defer l.owner.Unlock()
	next := l.state
	next.Starts++
	next.Names = append(slices.Clone(next.Names[max(len(next.Names)-maxNames+1, 0):]), name)
	return l.change(next, appendStarts(l.scratch[:0], &next))
}

// SetVerdict records why the member must not be started any more; empty: it may be.
func (l *Log) SetVerdict(verdict string) error {
	l.owner.Lock()
	defer l.owner.Unlock()
	next := l.state
	next.Verdict = verdict
	return l.change(next, appendStarts(l.scratch[:0], &next))
}

// SetPeer records what a peer has shown of itself.
func (l *Log) SetPeer(id uint64, p Peer) error {
	l.owner.Lock()
	defer l.owner.Unlock()
	next := l.state
	next.Peers = maps.Clone(next.Peers)
	if next.Peers == nil {
		next.Peers = map[uint64]Peer{}
	}
	next.Peers[id] = p
	return l.change(next, appendPeers(l.scratch[:0], next.Peers))
}

// Cut says that entries up to one are not needed any more: a journal has them,
// durably. An entry beyond the end of the log makes that the log's end, and so does one of another term than the
// log's of that index, which others have not agreed on: so a log begins whose journal is ahead of it. No more than the segments before that entry go.
func (l *Log) Cut(at Position) error {
	l.owner.Lock()
	defer l.owner.Unlock()
	next := l.state
	next.Cut = at
	return l.cut(next)
}

// Restore is Cut at the entry of a snapshot, and SetMembership with that at that entry: after
// a crash the log has both or neither.
func (l *Log) Restore(at Position, m Membership) error {
	l.owner.Lock()
	defer l.owner.Unlock()
	next := l.state
	next.Cut, next.Membership = at, m
	return l.cut(next)
}

func (l *Log) cut(next State) error {
	at := next.Cut
	if at.Index < l.state.Cut.Index {
		return nil
	}
	l.useAside()
	first, err := l.record(appendHard(nil, next.Hard))
	if err != nil {
		return err
	}
	if err := l.change(next, appendMembership(nil, &next), appendStarts(nil, &next), appendPeers(nil, next.Peers)); err != nil {
		return err
	}
	for {
		oldest, ok := l.wal.Oldest()
		if !ok || oldest.Sequence >= first.Segment || l.highestOf(oldest.Sequence) > at.Index {
			return l.wal.Flush()
		}
		if err := l.wal.RemoveOldest(); err != nil {
			return err
		}
		l.update(func() {
			l.segments = slices.DeleteFunc(l.segments, func(s segment) bool { return s.sequence == oldest.Sequence })
		})
	}
}

// setAside reserves a segment for what a Cut writes, unless it is, so that a log which has filled the disk can be cut, after another
// start, too. Without that no entry is appended.
func (l *Log) setAside() error {
	if l.aside {
		return nil
	}
	err := l.wal.Reserve(l.asideSize())
	l.aside = err == nil
	return err
}

// useAside takes back what was set aside.
func (l *Log) useAside() {
	if l.aside {
		l.wal.Unreserve(l.asideSize())
		l.aside = false
	}
}

// asideSize returns how many bytes are reserved, more than a segment: so there is room in another one than the present.
func (l *Log) asideSize() int64 { return l.segmentSize * 3 / 2 }

// Frees reports whether a Cut at an entry would remove a segment.
func (l *Log) Frees(index uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return index > l.state.Cut.Index && len(l.segments) > 1 && l.segments[0].highest <= index
}

// Beyond returns the index of the last entry that is not among the newest bytes of the log, about.
func (l *Log) Beyond(bytes int64) (index uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := int(bytes / l.segmentSize)
	for i := 0; i < len(l.segments)-1-kept; i++ {
		index = max(index, l.segments[i].highest)
	}
	return index
}

// Sync makes everything durable that was appended before.
func (l *Log) Sync() error {
	l.owner.Lock()
	target := l.wal.Target()
	l.owner.Unlock()
	return target.Sync()
}

// Recover tries to end the failed state that an error of Append or Sync has left; see
// [wal.Log.Recover]. If it works, everything that was appended is durable.
func (l *Log) Recover() error {
	l.owner.Lock()
	defer l.owner.Unlock()
	l.wal.RetryRoom()
	if l.wal.Flush() == nil && l.wal.Sync() == nil {
		return nil
	}
	moved := map[wal.Pos]wal.Pos{}
	if err := l.wal.Recover(func(from, to wal.Pos) {
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

// Prepare makes segments ahead of time and removes those that are not needed; see
// [wal.Log.Prepare]. Any goroutine may call it.
func (l *Log) Prepare() error {
	if !l.wal.NeedsPrepare() {
		return nil
	}
	l.preparing.Lock()
	defer l.preparing.Unlock()
	return l.wal.Prepare()
}

// Close closes the log in an orderly way.
func (l *Log) Close() error {
	l.owner.Lock()
	defer l.owner.Unlock()
	return l.wal.Close()
}

// State returns everything but the entries. The caller must not change its maps and slices.
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

// update changes what is in memory. The caller holds owner.
func (l *Log) update(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// append appends a record of the parts to the wal.
func (l *Log) append(head, data []byte) (wal.Pos, error) {
	l.scratch = head
	if len(data) == 0 {
		return l.wal.Append(head)
	}
	return l.wal.Append(head, data)
}

// record appends a record that is no entry.
func (l *Log) record(payload []byte) (wal.Pos, error) {
	pos, err := l.append(payload, nil)
	if err == nil {
		l.update(func() { l.note(pos, 0) })
	}
	return pos, err
}

// change appends records that make the state what is next, and hands all that was
// appended to the system.
func (l *Log) change(next State, payloads ...[]byte) error {
	for _, p := range payloads {
		if _, err := l.record(p); err != nil {
			return err
		}
	}
	l.update(func() {
		if next.Cut != l.state.Cut {
			l.cutAt(next.Cut)
		}
		l.state = next
	})
	return l.wal.Flush()
}
