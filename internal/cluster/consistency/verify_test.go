package consistency

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
)

// Verify compares the members' sums and identifies the member that differs.
func TestVerify(t *testing.T) {
	has := map[uint64]Sums{41: {Jobs: 2, Changed: 7, Hash: 60}, 42: {Jobs: 2, Changed: 7, Hash: 60}, 43: {Jobs: 2, Changed: 7, Hash: 47}}
	polled := map[uint64]int{}
	var highest uint64 // the highest entry of the compared members
	ask := func(_ context.Context, member uint64, r Request) (reply Reply, err error) {
		if member == 44 {
			return reply, errors.New("no route to host")
		}
		switch r.Step {
		case stepBegin:
			reply.From, reply.Due = member, max(r.Due, 1000)
		case stepSums:
			if polled[member]++; polled[member] > 2 {
				reply.Until = 100 + member
			}
			if r.From != highest || r.Until != 0 && r.Until != 100+highest {
				t.Errorf("sums from %d until %d", r.From, r.Until)
			}
			if r.Until != 0 {
				reply.Sums = new(has[member])
			}
		}
		return reply, nil
	}
	members := []apitype.ClusterMember{{ID: 43, Role: apitype.Leader}, {ID: 41}, {ID: 42}, {ID: 44}}
	highest = 43
	c := Verify(t.Context(), members, ask)
	if c.Same || !c.Members[0].Differs || c.Members[1].Differs || c.Members[2].Differs || c.Members[3].Problem != "no route to host" {
		t.Errorf("%+v", c)
	}
	highest = 42
	if c := Verify(t.Context(), members[1:3], ask); !c.Same || c.Members[0].Digest != c.Members[1].Digest {
		t.Errorf("two that are the same: %+v", c)
	}
	highest = 43
	if c := Verify(t.Context(), members[:2], ask); c.Members[0].Differs || !c.Members[1].Differs {
		t.Errorf("of two that differ it is not the leader: %+v", c)
	}
}

// Verify gives up on a member that receives nothing from the others, and compares the
// remaining members. It waits for a member that is only slow. A check that takes too long
// is not reported as a member's fault.
func TestVerifyOfStuckMember(t *testing.T) {
	for name, c := range map[string]struct {
		applied func(at time.Duration) uint64 // last entry applied by member 43; the others have entry 70
		want    string                        // problem reported for that member
		took    time.Duration
	}{
		"stuck":    {func(time.Duration) uint64 { return 60 }, "the member is stuck at entry 60 for 10s; another member has entry 70", stuckAfter},
		"slow":     {func(at time.Duration) uint64 { return 60 + uint64(at/(5*time.Second)) }, "", 50 * time.Second},
		"too slow": {func(at time.Duration) uint64 { return 60 + uint64(at/(9*time.Second)) }, "too long", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("too long"))
				defer cancel()
				began := time.Now()
				ask := func(ctx context.Context, member uint64, r Request) (reply Reply, err error) {
					if ctx.Err() != nil {
						return reply, fmt.Errorf("member %d does not answer", member)
					}
					reply.Applied = 70
					if member == 43 {
						reply.Applied = c.applied(time.Since(began))
					}
					switch r.Step {
					case stepBegin:
						reply.From = reply.Applied
					case stepSums:
						if reply.Applied < 70 {
							break
						}
						reply.Until, reply.Sums = 70, &Sums{Jobs: 2}
					}
					return reply, nil
				}
				got := Verify(ctx, []apitype.ClusterMember{{ID: 41}, {ID: 42}, {ID: 43}}, ask)
				if took := time.Since(began); took < c.took || took > c.took+time.Second {
					t.Errorf("it took %v", took)
				}
				for _, m := range got.Members {
					want := ""
					if m.ID == 43 || c.want == "too long" {
						want = c.want
					}
					if !strings.HasPrefix(m.Problem, want) || want == "" && (m.Problem != "" || m.Digest == "") {
						t.Errorf("%+v, want %q", m, want)
					}
				}
			})
		})
	}
}
