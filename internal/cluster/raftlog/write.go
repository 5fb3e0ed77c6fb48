package raftlog

import (
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/wal"
)

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

// SetMembership records the members and their roles.
func (l *Log) SetMembership(m Membership) error {
	return l.set(func(s *State) { s.Membership = m })
}

// Start records another start of the member, under a name that is random.
func (l *Log) Start(name uint64) error {
	return l.set(func(s *State) {
		s.Starts++
		s.Names = append(slices.Clone(s.Names[max(len(s.Names)-maxNames+1, 0):]), name)
	})
}

// SetVerdict records why the member must not be started any more; empty: it may be.
func (l *Log) SetVerdict(verdict string) error {
	return l.set(func(s *State) { s.Verdict = verdict })
}

// SetPeer records what a peer has shown of itself.
func (l *Log) SetPeer(id uint64, p Peer) error {
	return l.set(func(s *State) {
		peers := map[uint64]Peer{}
		maps.Copy(peers, s.Peers)
		peers[id] = p
		s.Peers = peers
	})
}

// set changes the state.
func (l *Log) set(change func(s *State)) error {
	l.owner.Lock()
	defer l.owner.Unlock()
	next := l.state
	change(&next)
	return l.change(next, appendState(nil, &next))
}

// Cut says that entries up to one are not needed any more: a journal has them, durably.
// An entry beyond the end of the log makes that the log's end, and so does one of another
// term than the log's of that index, which others have not agreed on: so a log begins
// whose journal is ahead of it. No more than the segments before that entry go.
func (l *Log) Cut(at Position) error {
	l.owner.Lock()
	defer l.owner.Unlock()
	next := l.state
	next.Cut = at
	return l.cut(next)
}

// Restore is Cut at the entry of a snapshot, and SetMembership with that at that entry:
// after a crash the log has both or neither.
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
	if err := l.change(next, appendState(nil, &next)); err != nil {
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

// setAside reserves a segment for what a Cut writes, unless it is, so that a log which
// has filled the disk can be cut, after another start, too. Without that no entry is
// appended.
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

// asideSize returns how many bytes are reserved, more than a segment: so there is room in
// another one than the present.
func (l *Log) asideSize() int64 { return l.segmentSize * 3 / 2 }

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
