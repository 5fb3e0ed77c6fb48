package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
	"github.com/beanpole-mq/beanpole/internal/cluster/consistency"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// verify compares the queues of all running members.
func (sim *simulation) verify() consistency.Result {
	var members []apitype.ClusterMember
	sessions := make(map[uint64]*consistency.Session)
	for _, m := range sim.nodes {
		members = append(members, apitype.ClusterMember{ID: m.id})
		sessions[m.id] = new(consistency.Session)
	}
	return consistency.Verify(sim.t.Context(), members, func(_ context.Context, id uint64, r consistency.Request) (consistency.Reply, error) {
		return sessions[id].Do(sim.nodes[id-1].member, &r)
	})
}

// The consistency check reports equal members as equal while clients put, delete and
// reserve, and it identifies a member that differs.
func TestConsistencyCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulation(t, 1, 3)
		time.Sleep(time.Second)
		l := sim.leader()
		for i := range 2000 {
			_, err := sim.put(l, "old", engine.Spec{Pri: uint32(i), TTR: 60, Delay: uint32(i % 3)}, "it stays")
			sim.must(err)
		}
		sim.must(l.Broker().Call(func(e *engine.Engine, now int64) {
			e.Pause(now, []byte("old"), 3600)
		}))
		stop := sim.load(40)
		var changed uint64
		for range 3 {
			c := sim.verify()
			if !c.Same || c.Members[0].Jobs == 0 {
				t.Errorf("members that are the same: %+v", c)
			}
			changed += c.Members[0].Changed
		}
		stop()
		time.Sleep(time.Second) // the followers receive all entries
		if changed == 0 {
			t.Error("nothing has changed during the consistency checks")
		}

		// Give one job another priority.
		follower := sim.nodes[l.opt.Self.ID%3]
		follower.member.Broker().View(func(e *engine.Engine, _ int64) {
			c, place, _ := e.NextSnapshot(0)
			for string(c.Tube) != "old" {
				c, place, _ = e.NextSnapshot(place)
			}
			c.Pri++
			e.Restore(c)
		})
		c := sim.verify()
		for _, m := range c.Members {
			if c.Same || m.Differs != (m.ID == follower.id) {
				t.Errorf("%+v, want a difference of member %d", c, follower.id)
			}
		}
		sim.close()
	})
}
