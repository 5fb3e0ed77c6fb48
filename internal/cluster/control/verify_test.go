package control

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/cluster/status"
)

// Members that answer with what they have: the one that differs is found, and what of it.
func TestVerify(t *testing.T) {
	same := []cluster.Counted{{Key: 1, Hash: 10}, {Key: 2, Hash: 20}, {Key: 1 << 63, Hash: 30}}
	has := map[uint64][]cluster.Counted{
		41: same,
		42: same,
		43: {{Key: 1, Hash: 11}, {Key: 3, Hash: 5}, {Key: 1 << 63, Hash: 31}},
	}
	polled := map[uint64]int{}
	var highest uint64 // of the members that are compared
	ask := func(_ context.Context, member uint64, r CensusRequest) (reply CensusReply, err error) {
		if member == 44 {
			return reply, errors.New("no route to host")
		}
		switch r.Step {
		case censusBegin:
			reply.From, reply.Due = member, max(r.Due, 1000)
		case censusWalk:
			if r.From != highest {
				t.Errorf("the walk is to begin at %d, and not at the highest entry", r.From)
			}
		case censusState:
			if polled[member]++; polled[member] > 2 {
				reply.Until = 100 + member
			}
		case censusSums:
			if r.From != highest || r.Until != 100+highest {
				t.Errorf("sums from %d until %d", r.From, r.Until)
			}
			s := &cluster.CensusSums{Jobs: 2, Changed: 7, Buckets: make([]uint64, cluster.CensusBuckets)}
			for _, k := range has[member] {
				s.Buckets[k.Key%cluster.CensusBuckets] += k.Hash
			}
			reply.Sums = s
		case censusOf:
			for _, k := range has[member] {
				if k.Key%cluster.CensusBuckets == uint64(r.Bucket) {
					reply.In = append(reply.In, k)
				}
			}
		}
		return reply, nil
	}
	members := []status.Member{{ID: 43, Role: status.Leader}, {ID: 41}, {ID: 42}, {ID: 44}}
	highest = 43
	c := Verify(t.Context(), members, ask)
	if c.Same || !c.Members[0].Differs || c.Members[1].Differs || c.Members[2].Differs || c.Members[3].Problem != "no route to host" {
		t.Errorf("%+v", c)
	}
	want := []Difference{{Member: 43, Kind: "other"}, {Member: 43, Job: 1, Kind: "other"}, {Member: 43, Job: 2, Kind: "missing"}, {Member: 43, Job: 3, Kind: "extra"}}
	if diff := cmp.Diff(want, c.Differences); diff != "" {
		t.Error(diff)
	}
	highest = 42
	if c := Verify(t.Context(), members[1:3], ask); !c.Same || len(c.Differences) > 0 || c.Members[0].Digest != c.Members[1].Digest {
		t.Errorf("two that are the same: %+v", c)
	}
	highest = 43
	if c := Verify(t.Context(), members[:2], ask); c.Members[0].Differs || !c.Members[1].Differs {
		t.Errorf("of two that differ it is not the leader: %+v", c)
	}
}

// A member that has done its part is asked on while another one takes its time: it would give up otherwise.
func TestVerifyOfSlowMember(t *testing.T) {
	const patience = 3 // so often another one is asked before a member gives up
	for _, slowStep := range []string{censusState, censusSums} {
		waits := map[uint64]int{} // how often others were asked since a member was
		slow := 0
		ask := func(_ context.Context, member uint64, r CensusRequest) (reply CensusReply, err error) {
			if waits[member] > patience {
				return reply, errors.New("it was given up")
			}
			waits[member] = 0
			waits[83-member]++
			if member == 41 && r.Step == slowStep && slow < 2*patience {
				slow++
				return reply, nil
			}
			switch r.Step {
			case censusState:
				reply.Until = 7
			case censusSums:
				reply.Sums = &cluster.CensusSums{Jobs: 2, Buckets: make([]uint64, cluster.CensusBuckets)}
			}
			return reply, nil
		}
		if c := Verify(t.Context(), []status.Member{{ID: 41}, {ID: 42}}, ask); !c.Same {
			t.Errorf("one takes its time with %s: %+v", slowStep, c.Members)
		}
	}
}
