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

// maxNames is the maximum number of stored names of starts.
const maxNames = 32

// errRecord is wrapped by the errors of records that cannot be decoded.
var errRecord = errors.New("raftlog: invalid record, or a record of another version")

// A Position identifies an entry: Raft's log has at most one entry with a given index and
// term.
type Position struct {
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
}

// After reports whether, in Raft's order, a log that ends with p is ahead of a log that
// ends with q.
func (p Position) After(q Position) bool {
	return p.Term > q.Term || p.Term == q.Term && p.Index > q.Index
}

// A MemberInfo describes a member of the cluster.
type MemberInfo struct {
	ID       uint64 // random, never reused
	Number   uint64 // short, never reused
	Address  string // address of its listener for members
	Replaces uint64 // the id of the member that this learner replaces when it becomes a voter, or 0
}

// A Peer is this member's record of another member. It serves to detect that the other
// member's disk was rolled back.
type Peer struct {
	Starts       uint64   // the highest start counter that it has reported
	Name         uint64   // name of that start; 0 if it has reported none
	Acknowledged Position // the last entry that it has acknowledged to this member
}

// A Membership lists the members and their roles after a change of configuration.
type Membership struct {
	Roles      *raftpb.ConfState
	RolesIndex uint64 // index of the last change that Roles includes, or 0
	Members    []MemberInfo
	LastNumber uint64 // the highest Number that a member has had
}

// A State is the content of the log except the entries. A record contains all of it,
// except Hard, in JSON.
type State struct {
	Membership
	Hard        *raftpb.HardState `json:"-"`
	Cut         Position          // entries up to this one are not in the log
	Starts      uint64            // number of starts of the member
	Names       []uint64          // names of the latest starts, in order; random, so that they identify a copy of the log
	FatalReason string            // the reason why the member must not be started again, or empty
	Peers       map[uint64]Peer
}

func appendEntry(dst []byte, e *raftpb.Entry) []byte {
	dst = append(dst, kindEntry)
	for _, v := range [...]uint64{e.GetTerm(), e.GetIndex(), uint64(e.GetType())} {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst // the caller writes the data separately, because it can be large
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
		panic(err) // all fields are numbers and texts
	}
	return append(append(dst, kindState), text...)
}

// A reader reads numbers from a payload. After the end of the payload, it reads zeros.
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

// decodeEntry decodes the record of an entry and copies its data.
func decodeEntry(payload []byte) (*raftpb.Entry, error) {
	r := reader{rest: payload[1:]}
	term, index, kind := r.number(), r.number(), r.number()
	if r.bad || kind > uint64(raftpb.EntryConfChangeV2) || index == 0 {
		return nil, fmt.Errorf("%w: entry", errRecord)
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
			return fmt.Errorf("%w: hard state", errRecord)
		}
	case kindState:
		next := State{Hard: s.Hard}
		if err := json.Unmarshal(payload[1:], &next); err != nil {
			return fmt.Errorf("%w: state: %w", errRecord, err)
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
