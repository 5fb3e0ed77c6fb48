package core

import (
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// regroup records the members' roles.
func (m *member) regroup(g *Roles) {
	sim := m.sim
	record := func() { sim.must(m.log.SetMembership(raftlog.Membership{Roles: g.Conf, RolesIndex: g.Index})) }
	if sim.fault == "roles are recorded after a cut" {
		m.do(second, record)
	} else {
		record()
	}
	sim.regrouped(g)
}

// regrouped creates the nodes for a change of the members.
func (sim *simulation) regrouped(g *Roles) {
	for _, id := range g.Conf.GetLearners() {
		if id == uint64(len(sim.members)+1) {
			sim.grow(0.95+sim.rng.Float64()/10, g.Conf, g.Index)
		}
	}
	for _, m := range sim.members {
		if ids := slices.Concat(g.Conf.GetVoters(), g.Conf.GetLearners(), g.Conf.GetVotersOutgoing()); m.gone || slices.Contains(ids, m.id) || g.Index < sim.lastChange {
			continue
		}
		m.gone = true // the member continues for some time without this information
		m.do(second, func() { m.crash(true) })
	}
	sim.lastChange = max(sim.lastChange, g.Index)
}

// change lets the active member change the members: from 3 to 5 voters, with learners in
// between, then to 3 others.
func (sim *simulation) change() {
	for _, m := range sim.members {
		if m.up && m.epoch != 0 && sim.now >= m.paused {
			m.do(0, m.changeMembers)
		}
	}
	if sim.now < changesEnd {
		sim.after(sim.rng.Int64N(300*ms), sim.change)
	}
}

// changesEnd is the end of the membership changes. Members that join earlier have time to
// catch up before they are checked.
const changesEnd = 18 * second

func (m *member) changeMembers() {
	sim := m.sim
	conf, _ := m.core.Conf()
	propose := func(kind raftpb.ConfChangeType, id uint64) {
		cc := &raftpb.ConfChangeV2{Changes: []*raftpb.ConfChangeSingle{{Type: kind.Enum(), NodeId: &id}}}
		if err := m.core.ProposeConf(m.epoch, cc); err == nil {
			sim.changes++
		}
	}
	voters, learners := conf.GetVoters(), conf.GetLearners()
	switch {
	case len(learners) > 0:
		if p := m.core.Status().Progress[learners[0]]; p.Match+5 > m.core.Status().GetCommit() {
			propose(raftpb.ConfChangeAddNode, learners[0])
		}
	case len(sim.members) < 5:
		propose(raftpb.ConfChangeAddLearnerNode, uint64(len(sim.members)+1))
	case len(voters) > 3:
		propose(raftpb.ConfChangeRemoveNode, voters[sim.rng.IntN(len(voters))])
	}
}

// changing changes the members under load and with faults.
func changing(t *testing.T, seed uint64, p fault) *simulation {
	sim := newSimulation(t, seed, 11, p)
	sim.faults = true
	sim.join(3)
	sim.clients()
	sim.mishaps()
	sim.after(500*ms, sim.change)
	sim.run(15 * second)
	sim.heal()
	sim.settle()
	return sim
}

// While members join and leave, and disks, processes and networks fail, no acknowledged
// change is lost, and all members have the same list of members.
func TestMembers(t *testing.T) {
	changes, acknowledged := 0, 0
	seeds.Each(t, 8, func(t *testing.T, seed uint64) {
		sim := changing(t, seed, "")
		if sim.wrong != "" {
			t.Fatalf("%s\n%v", sim.wrong, sim)
		}
		changes += sim.changes
		acknowledged += sim.acknowledged
	}, 1330339454)
	t.Logf("%d changes of the members, %d commands acknowledged", changes, acknowledged)
}

// If the log is cut before a role change in it is recorded, the roles of the members
// become different.
func TestPlantedRoles(t *testing.T) {
	seeds.Find(t, 3011575571, func(t *testing.T, seed uint64) string {
		return found(func() string { return changing(t, seed, "roles are recorded after a cut").wrong })
	})
}
