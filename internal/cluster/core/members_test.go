package core

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/cryptotest"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
	"github.com/beanpole-mq/beanpole/internal/vfs/memfs"
)

// regroup records the roles of the members.
func (m *member) regroup(g *Roles) {
	w := m.w
	record := func() { w.must(m.log.SetMembership(raftlog.Membership{Roles: g.Conf, RolesIndex: g.Index})) }
	if w.plant == "roles are recorded after a cut" {
		m.do(second, record)
	} else {
		record()
	}
	w.regrouped(g)
}

// regrouped makes the machines that a change of the members speaks of.
func (w *world) regrouped(g *Roles) {
	for _, id := range g.Conf.GetLearners() {
		if id == uint64(len(w.members)+1) {
			w.welcome(id, g)
		}
	}
	for _, m := range w.members {
		if ids := slices.Concat(g.Conf.GetVoters(), g.Conf.GetLearners(), g.Conf.GetVotersOutgoing()); m.gone || slices.Contains(ids, m.id) || g.Index < w.lastChange {
			continue
		}
		m.gone = true // it goes on for a while without knowing it
		m.do(second, func() { m.crash(true) })
	}
	w.lastChange = max(w.lastChange, g.Index)
}

// welcome makes the machine of a learner.
func (w *world) welcome(id uint64, g *Roles) {
	m := &member{w: w, id: id, disk: memfs.New(), rate: 0.95 + w.rng.Float64()/10, base: 1 + w.rng.Int64N(1000*second)}
	m.disk.Mkdir("d")
	w.members = append(w.members, m)
	m.open()
	w.must(m.log.SetMembership(raftlog.Membership{Roles: g.Conf, RolesIndex: g.Index}))
	w.must(m.log.Sync())
	m.boot()
}

// change lets whoever is active change the members: from 3 to 5 voters, by way of learners, then to 3 others.
func (w *world) change() {
	for _, m := range w.members {
		if m.up && m.epoch != 0 && w.now >= m.paused {
			m.do(0, m.changeMembers)
		}
	}
	w.after(w.rng.Int64N(300*ms), w.change)
}

func (m *member) changeMembers() {
	w := m.w
	conf, _ := m.core.Conf()
	propose := func(kind raftpb.ConfChangeType, id uint64) {
		cc := &raftpb.ConfChangeV2{Changes: []*raftpb.ConfChangeSingle{{Type: kind.Enum(), NodeId: &id}}}
		if err := m.core.ProposeConf(m.epoch, cc); err == nil {
			w.changes++
		}
	}
	voters, learners := conf.GetVoters(), conf.GetLearners()
	switch {
	case len(learners) > 0:
		if p := m.core.Status().Progress[learners[0]]; p.Match+5 > m.core.Status().GetCommit() {
			propose(raftpb.ConfChangeAddNode, learners[0])
		}
	case len(w.members) < 5:
		propose(raftpb.ConfChangeAddLearnerNode, uint64(len(w.members)+1))
	case len(voters) > 3:
		propose(raftpb.ConfChangeRemoveNode, voters[w.rng.IntN(len(voters))])
	}
}

// changing lets the members change under load and faults.
func changing(t *testing.T, seed uint64, p plant) *world {
	cryptotest.SetGlobalRandom(t, seed)
	w := &world{rng: rand.New(rand.NewPCG(seed, 11)), cut: map[[2]int]bool{}, plant: p, faults: true, oracle: newOracle()}
	w.join(3)
	w.clients()
	w.mishaps()
	w.after(500*ms, w.change)
	w.run(15 * second)
	w.heal()
	w.settle()
	return w
}

// Members come and go while disks, processes and networks fail; nothing that was acknowledged is lost, and all agree
// who they are.
func TestMembers(t *testing.T) {
	changes, acknowledged := 0, 0
	seeds.Each(t, 8, func(t *testing.T, seed uint64) {
		w := changing(t, seed, "")
		if w.wrong != "" {
			t.Fatalf("%s\n%v", w.wrong, w)
		}
		changes += w.changes
		acknowledged += w.acknowledged
	})
	t.Logf("%d changes of the members, %d commands acknowledged", changes, acknowledged)
}

// If a log is cut before the roles are recorded that were changed in it, a member comes to have other ones.
func TestPlantedRoles(t *testing.T) {
	seeds.Find(t, 703879273, func(t *testing.T, seed uint64) string {
		return found(func() string { return changing(t, seed, "roles are recorded after a cut").wrong })
	})
}
