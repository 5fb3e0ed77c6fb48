package raftlog

import (
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/wal"
)

// Append appends entries, and the hard state if it is not nil, and passes them to the
// operating system. An entry overrides existing entries with the same and higher indexes.
//
// After an error of this method, and of the other methods that write, call Recover and
// then repeat the call. The repeated call completes the rest.
func (l *Log) Append(hard *raftpb.HardState, entries []*raftpb.Entry) error {
	l.owner.Lock()
	defer l.owner.Unlock()
	if err := l.reserveForCut(); err != nil {
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

// Start records a start of the member with a random name.
func (l *Log) Start(name uint64) error {
	return l.set(func(s *State) {
		s.Starts++
		s.Names = append(slices.Clone(s.Names[max(len(s.Names)-maxNames+1, 0):]), name)
	})
}

// SetFatalReason records the reason why the member must not be started again. An empty
// reason permits a start.
func (l *Log) SetFatalReason(reason string) error {
	return l.set(func(s *State) { s.FatalReason = reason })
}

// SetPeer records the state of a peer.
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

// Cut records that the entries up to at are no longer needed, because a journal durably
// contains them. If the log ends before at, or its entry with that index has another term
// and was not committed, the log is then empty and starts after at. A new log for an
// existing journal is created in this way. Cut removes only segments before at.
func (l *Log) Cut(at Position) error {
	l.owner.Lock()
	defer l.owner.Unlock()
	next := l.state
	next.Cut = at
	return l.cut(next)
}

// Restore combines Cut at the entry of a snapshot with SetMembership for that entry.
// After a crash, the log has both changes or neither.
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
	l.releaseReserve()
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

// reserveForCut reserves a segment for the records of a Cut, unless one is reserved.
// Therefore, a log that has filled the disk can be cut, even after a restart. Without the
// reserve, no entry is appended.
func (l *Log) reserveForCut() error {
	if l.reserved {
		return nil
	}
	err := l.wal.Reserve(l.reserveSize())
	l.reserved = err == nil
	return err
}

// releaseReserve releases the reserve.
func (l *Log) releaseReserve() {
	if l.reserved {
		l.wal.Unreserve(l.reserveSize())
		l.reserved = false
	}
}

// reserveSize returns the number of reserved bytes. It exceeds a segment, so that a
// segment other than the current one has space.
func (l *Log) reserveSize() int64 { return l.segmentSize * 3 / 2 }

// update changes memory. The caller holds owner.
func (l *Log) update(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// append appends a record of head and data to the wal.
func (l *Log) append(head, data []byte) (wal.Pos, error) {
	l.scratch = head
	if len(data) == 0 {
		return l.wal.Append(head)
	}
	return l.wal.Append(head, data)
}

// record appends a record without an entry.
func (l *Log) record(payload []byte) (wal.Pos, error) {
	pos, err := l.append(payload, nil)
	if err == nil {
		l.update(func() { l.note(pos, 0) })
	}
	return pos, err
}

// change appends records that change the state to next, and passes all appended data to
// the operating system.
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
