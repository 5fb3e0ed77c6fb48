package core

import (
	"fmt"
	"slices"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// A fetch is the transfer of a snapshot to the member that lacks it.
type fetch struct {
	underWay bool
	sealed   []change // fetched changes; durable
	waits    int      // on the leader: number of ticks for which it has offered a snapshot in vain
}

// Planted faults of snapshots.
const (
	unwanted  fault = "a snapshot is installed that Raft does not want"
	earlyDone fault = "Raft hears of a snapshot before it is installed"
	notHeld   fault = "Raft hears of entries before it hears of the snapshot"
	lostOffer fault = "an offer that is lost is not repeated"
)

// fetchSnapshot starts to copy the leader's applied state if this member lacks it.
func (m *member) fetchSnapshot() {
	sim := m.sim
	lead := m.core.Lead().Leader
	if m.fetch.underWay || lead == 0 || lead == m.id || !m.core.LacksSnapshot() {
		return
	}
	m.fetch.underWay = true
	m.do(sim.rng.Int64N(20*ms), func() {
		from := sim.members[lead-1]
		if !from.up || sim.cut[[2]int{int(from.id), int(m.id)}] || sim.faults && sim.rng.IntN(8) == 0 {
			m.do(sim.rng.Int64N(second), func() { m.fetch.underWay = false })
			return
		}
		changes, conf := from.snapshot()
		m.do(sim.rng.Int64N(500*ms), func() {
			m.fetch.sealed = changes
			m.offer(conf)
		})
	})
}

// snapshot returns the changes that a member has applied, and the roles of the members
// after them.
func (m *member) snapshot() ([]change, *raftpb.ConfState) {
	conf, _ := m.core.Conf()
	changes := slices.Clone(m.applied)
	for len(changes) > 0 && changes[len(changes)-1].Index > m.core.Applied().Index {
		changes = changes[:len(changes)-1]
	}
	return changes, conf
}

// offer passes the fetched snapshot to Raft.
func (m *member) offer(conf *raftpb.ConfState) {
	if lead := m.core.Lead().Leader; lead == 0 {
		m.do(60*ms, func() { m.offer(conf) })
		return
	}
	last := m.fetch.sealed[len(m.fetch.sealed)-1].Position
	if m.core.Restore(&raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{ConfState: conf, Index: &last.Index, Term: &last.Term}}) {
		return
	}
	if m.sim.fault == unwanted {
		m.takeOver()
	}
	m.fetch = fetch{}
}

// install installs the snapshot whose log is durable. This takes some time.
func (m *member) install() {
	if m.sim.fault == earlyDone {
		m.core.Installed()
	}
	m.do(m.sim.rng.Int64N(300*ms), func() {
		m.takeOver()
		m.fetch = fetch{}
		m.core.Installed()
	})
}

func (m *member) takeOver() {
	m.applied = m.fetch.sealed
	m.synced = len(m.applied)
	for _, f := range m.applied {
		m.sim.agree(m, f)
	}
	m.sim.installed++
	m.rebuild()
}

// settleSnapshot installs, at a start, the snapshot that ends where the log was cut.
func (m *member) settleSnapshot() {
	if n := len(m.fetch.sealed); n > 0 && m.fetch.sealed[n-1].Position == m.log.State().Cut {
		m.takeOver()
	}
	m.fetch = fetch{}
}

// watchSnapshots reports offers of snapshots that had no effect as failed, so that the
// leader repeats them.
func (m *member) watchSnapshots() {
	for id, p := range m.core.Status().Progress {
		if id > uint64(len(m.sim.members)) {
			continue // the member is about to be added
		}
		to := &m.sim.members[id-1].fetch
		if p.State != tracker.StateSnapshot || to.underWay {
			to.waits = 0
		} else if to.waits++; to.waits > 15 && m.sim.fault != lostOffer {
			to.waits = 0
			m.core.SnapshotFailed(id)
		}
	}
}

// Raft accepts a snapshot only if it contains missing entries and lists this member.
// After that, every member has a leader.
func TestRestore(t *testing.T) {
	sim, leader, others := leads(t, 1, 3, "")
	m := others[0]
	for range 20 {
		leader.do(0, func() { leader.ask(put) })
		sim.run(sim.now + 10*ms)
	}
	sim.run(sim.now + second)
	last, conf := m.core.Applied(), &raftpb.ConfState{Voters: []uint64{1, 2, 3}}
	restore := func(index uint64, conf *raftpb.ConfState) bool {
		return m.core.Restore(&raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{ConfState: conf, Index: &index, Term: &last.Term}})
	}
	for name, ok := range map[string]bool{
		"that is older":          restore(last.Index-1, conf),
		"of what the member has": restore(last.Index, conf),
		"without the member":     restore(last.Index+9, &raftpb.ConfState{Voters: []uint64{leader.id, others[1].id}}),
		"at the leader":          leader.core.Restore(&raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{ConfState: conf, Index: &last.Index, Term: &last.Term}}),
	} {
		if ok {
			t.Errorf("a snapshot %s is restored", name)
		}
	}
	if !restore(last.Index+9, conf) {
		t.Error("a snapshot that the member lacks is not restored")
	}
	if now, index := m.core.Conf(); index != last.Index+9 || fmt.Sprint(now) != fmt.Sprint(conf) {
		t.Errorf("the roles are %v since %d", now, index)
	}
	work := m.core.Work()
	if len(work.Write) == 0 || work.Write[len(work.Write)-1].Snapshot == nil || m.core.state != raft.StateFollower {
		t.Errorf("writes: %+v", work.Write)
	}
}
