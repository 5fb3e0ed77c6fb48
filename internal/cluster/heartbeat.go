package cluster

import (
	"encoding/binary"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// A payload is what a leader tells another member with each heartbeat, after Raft's
// context of that:
//
//	payload := time min-match cut n      each 8 bytes; n: number of those before it
//
// time is the cluster's; all members have the log up to min-match; the leader's begins
// after cut.

// addPayload adds the payload to heartbeats that are about to be sent.
func (r *raftLoop) addPayload(messages []*raftpb.Message) {
	var b []byte
	for _, msg := range messages {
		if msg.GetType() != raftpb.MsgHeartbeat {
			continue
		}
		if b == nil {
			b = r.payload()
		}
		msg.Context = slices.Concat(msg.GetContext(), b)
	}
}

func (r *raftLoop) payload() []byte {
	words := []uint64{uint64(r.m.clock.time()), r.minMatch, r.m.log.State().Cut.Index, 3}
	b := make([]byte, 0, 8*len(words))
	for _, v := range words {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// takePayload takes the payload out of a heartbeat.
func (r *raftLoop) takePayload(msg *raftpb.Message) {
	if msg.GetType() != raftpb.MsgHeartbeat {
		return
	}
	words, context := splitPayload(msg.GetContext())
	msg.Context = context
	if _, term := r.core.Leader(); len(words) < 3 || msg.GetTerm() < term {
		return
	}
	r.m.clock.hear(int64(words[0]), r.mayBeLate(msg.GetFrom()))
	r.clockSource = msg.GetFrom()
	delete(r.health.asked, r.clockSource)
	r.minMatch, r.minReachable = words[1], words[2]
}

// splitPayload returns the words of a payload and the context before it.
func splitPayload(b []byte) (words []uint64, context []byte) {
	if len(b) < 8 {
		return nil, nil
	}
	rest, n := b[:len(b)-8], binary.LittleEndian.Uint64(b[len(b)-8:])
	if n > uint64(len(rest))/8 {
		return nil, nil
	}
	begin := len(rest) - 8*int(n)
	for i := begin; i < len(rest); i += 8 {
		words = append(words, binary.LittleEndian.Uint64(rest[i:]))
	}
	if begin > 0 {
		context = rest[:begin]
	}
	return words, context
}
