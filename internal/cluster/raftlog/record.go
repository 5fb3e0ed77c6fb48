package raftlog

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// Kinds of records. They are part of the format.
const (
	kindEntry = 1
	kindHard  = 2
	kindState = 8
)

// maxNames is how many names of starts are kept.
const maxNames = 32

// errRecord is wrapped by the errors of records that cannot be understood.
var errRecord = errors.New("raftlog: not a record of this version")

// A Position names an entry: in Raft's log there is one of an index and a term.
type Position struct {
	Index, Term uint64
}

// After reports whether a log that ends with p is ahead of one that ends with q, by
// Raft's order.
func (p Position) After(q Position) bool {
	return p.Term > q.Term || p.Term == q.Term && p.Index > q.Index
}

// A Member is one of those that keep the queue.
type Member struct {
	ID       uint64 // random, never used again
	Number   uint64 // short, never used again
	Address  string // of its listener for members
	Replaces uint64 // the id of the member that goes when this one, a learner yet, gets its vote; 0: none
}

// A Peer is what this member remembers of another one, so that it notices when that
// one's disk was rolled back.
type Peer struct {
	Starts       uint64   // the highest start counter that it has shown
	Name         uint64   // of that start; 0: it has shown none
	Acknowledged Position // the highest entry that it has acknowledged to this member
}

// A Membership is the members and their roles after a change of configuration.
type Membership struct {
	Roles      *raftpb.ConfState
	RolesIndex uint64 // of the last change that Roles includes; 0: before any
	Members    []Member
	LastNumber uint64 // the highest Number that a member was ever given
}

// A State is everything but the entries. A record has all of it but Hard, in JSON.
type State struct {
	Membership
	Hard    *raftpb.HardState `json:"-"`
	Cut     Position          // entries up to this one are not in the log
	Starts  uint64            // how often the member was started
	Names   []uint64          // of the last of these starts, in order: random, so that a copy of the log cannot count up to the same
	Verdict string            // why the member must not be started any more; empty: it may be
	Peers   map[uint64]Peer
}

func appendEntry(dst []byte, e *raftpb.Entry) []byte {
	dst = append(dst, kindEntry)
	for _, v := range [...]uint64{e.GetTerm(), e.GetIndex(), uint64(e.GetType())} {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst // the data follows as a part of its own: it may be large
}

func appendHard(dst []byte, h *raftpb.HardState) []byte {
	dst = append(dst, kindHard)
	for _, v := range [...]uint64{h.GetTerm(), h.GetVote(), h.GetCommit()} {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

func appendState(dst []byte, s *State) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // numbers and texts
	}
	return append(append(dst, kindState), text...)
}

// A reader takes numbers from a payload. After the first that is not there, all are zero.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.rest, r.bad = nil, true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// decodeEntry decodes a record of the kind entry, and copies its data.
func decodeEntry(payload []byte) (*raftpb.Entry, error) {
	r := reader{rest: payload[1:]}
	term, index, kind := r.number(), r.number(), r.number()
	if r.bad || kind > uint64(raftpb.EntryConfChangeV2) || index == 0 {
		return nil, fmt.Errorf("%w: an entry", errRecord)
	}
	e := &raftpb.Entry{Term: &term, Index: &index, Type: raftpb.EntryType(kind).Enum()}
	if len(r.rest) > 0 {
		e.Data = slices.Clone(r.rest)
	}
	return e, nil
}

// decodeState decodes a record of another kind into s.
func decodeState(s *State, payload []byte) error {
	switch payload[0] {
	case kindHard:
		r := reader{rest: payload[1:]}
		s.Hard = hardState(r.number(), r.number(), r.number())
		if r.bad || len(r.rest) > 0 {
			return fmt.Errorf("%w: a hard state", errRecord)
		}
	case kindState:
		next := State{Hard: s.Hard}
		if err := json.Unmarshal(payload[1:], &next); err != nil {
			return fmt.Errorf("%w: a state: %w", errRecord, err)
		}
		*s = next
	default:
		return fmt.Errorf("%w: kind %d", errRecord, payload[0])
	}
	return nil
}

func hardState(term, vote, commit uint64) *raftpb.HardState {
	return &raftpb.HardState{Term: &term, Vote: &vote, Commit: &commit}
}
