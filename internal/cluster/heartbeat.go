package cluster

import (
	"encoding/binary"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// In each heartbeat of a leader, a payload follows Raft's context:
//
//	payload := time min-match cut      each 8 bytes
//
// time is the cluster's time. min-match is the last entry that all members have. The
// leader's log starts after the entry cut.
const payloadLength = 24

// addPayload adds the payload to outgoing heartbeats.
func (r *raftLoop) addPayload(messages []*raftpb.Message) {
	var payload []byte
	for _, msg := range messages {
		if msg.GetType() != raftpb.MsgHeartbeat {
			continue
		}
		if payload == nil {
			for _, v := range [...]uint64{uint64(r.m.clock.time()), r.minMatch, r.m.log.State().Cut.Index} {
				payload = binary.LittleEndian.AppendUint64(payload, v)
			}
		}
		msg.Context = slices.Concat(msg.GetContext(), payload)
	}
}

// takePayload removes the payload from a heartbeat and records its values.
func (r *raftLoop) takePayload(msg *raftpb.Message) {
	begin := len(msg.GetContext()) - payloadLength
	if msg.GetType() != raftpb.MsgHeartbeat || begin < 0 {
		return
	}
	payload := msg.Context[begin:]
	if msg.Context = msg.Context[:begin]; begin == 0 {
		msg.Context = nil // Raft uses nil for an empty context
	}
	if term := r.core.Lead().Term; msg.GetTerm() < term {
		return
	}
	r.m.clock.hear(int64(binary.LittleEndian.Uint64(payload)), r.mayBeLate(msg.GetFrom()))
	r.clockSource = msg.GetFrom()
	delete(r.health.asked, r.clockSource)
	r.minMatch, r.minReachable = binary.LittleEndian.Uint64(payload[8:]), binary.LittleEndian.Uint64(payload[16:])
}
