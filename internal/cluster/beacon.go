package cluster

import (
	"encoding/binary"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// A beacon is what a leader tells another member with each heartbeat, after Raft's context of that:
//
//	beacon := time everywhere cut n     each 8 bytes; n: number of those before it
//
// time is the cluster's; all members have the log up to everywhere; the leader's begins after cut.

// addBeacons adds the beacon to heartbeats that are about to be sent.
func (r *raftLoop) addBeacons(messages []*raftpb.Message) {
	var b []byte
	for _, msg := range messages {
		if msg.GetType() != raftpb.MsgHeartbeat {
			continue
		}
		if b == nil {
			b = r.beacon()
		}
		msg.Context = slices.Concat(msg.GetContext(), b)
	}
}

func (r *raftLoop) beacon() []byte {
	words := []uint64{uint64(r.clock.time()), r.everywhere, r.log.State().Cut.Index, 3}
	b := make([]byte, 0, 8*len(words))
	for _, v := range words {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// takeBeacon takes the beacon out of a heartbeat.
func (r *raftLoop) takeBeacon(msg *raftpb.Message) {
	if msg.GetType() != raftpb.MsgHeartbeat {
		return
	}
	words, context := splitBeacon(msg.GetContext())
	msg.Context = context
	if _, term := r.core.Leader(); len(words) < 3 || msg.GetTerm() < term {
		return
	}
	r.clock.hear(int64(words[0]), r.mayBeLate(msg.GetFrom()))
	r.told = msg.GetFrom()
	delete(r.health.asked, r.told)
	r.everywhere, r.near = words[1], words[2]
}

// splitBeacon returns the words of a beacon and the context before it.
func splitBeacon(b []byte) (words []uint64, context []byte) {
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
