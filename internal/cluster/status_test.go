package cluster

import (
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
)

// statusOf returns a member's current status.
func (sim *simulation) statusOf(m *node) (s Status) {
	sim.t.Helper()
	if !m.member.inLoop(func() { s = m.member.raft.status() }) {
		sim.fatalf("member %d has stopped", m.id)
	}
	return s
}

// of returns the status of one member.
func (s *Status) of(id uint64) (m apitype.ClusterMember) {
	for _, k := range s.Members {
		if k.ID == id {
			m = k
		}
	}
	return m
}

// A member omits values that it does not have, and adds the age to values that it had
// earlier.
func TestStatusIsNotGuessed(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		time.Sleep(time.Second)
		puts := func() {
			sim.mustPut(nil, 5, "hello")
		}
		puts()
		sim.must(sim.leader().Transfer(t.Context(), 0))
		for began := time.Now(); time.Since(began) < time.Second; time.Sleep(time.Millisecond) { // even while the new leader has heard from no member
			for _, m := range sim.nodes {
				s := sim.statusOf(m)
				for _, k := range s.Members {
					if k.Progress != nil && k.Lag > 5 || k.ID == m.id && k.Progress == nil {
						t.Fatalf("member %d reports about %d: %+v", m.id, k.ID, k.Progress)
					}
					if k.ID != m.id && s.Leader != m.id && k.Progress != nil {
						t.Fatalf("member %d does not lead, and reports about %d: %+v", m.id, k.ID, k.Progress)
					}
				}
			}
		}
		l := sim.nodeOf(sim.leader())
		lost := sim.nodes[l.id%3]
		had := sim.statusOf(lost)
		sim.part(lost)
		time.Sleep(100 * time.Millisecond)
		sim.leader().Unreachable(lost.id) // the connection is lost
		time.Sleep(200 * time.Millisecond)
		if s := sim.statusOf(l); s.of(lost.id).Reachable {
			t.Error("a member is reachable after the loss of its connection")
		}
		puts()
		time.Sleep(20 * time.Second)
		s := sim.statusOf(l)
		k := s.of(lost.id)
		if k.Reachable || k.Heard == nil || *k.Heard < 18 || *k.Heard > 20 || k.Progress == nil || k.Applied != had.of(lost.id).Applied || k.Lag != s.Commit-k.Applied {
			t.Errorf("the leader reports %+v", k)
		}
		if s.Since < 20 || s.Since > 22 {
			t.Errorf("the leader has led for %d s", s.Since)
		}
		if own := sim.statusOf(lost); own.Leader != 0 || own.Since < 16 || own.Since > 20 || own.of(l.id).Progress != nil || own.of(lost.id).Lag != 0 {
			t.Errorf("the isolated member reports %+v", own)
		}
		sim.heal()
	})
}

// A leader shows a member as catching up only if the member lacks old entries, and not if
// it lacks only new ones.
func TestCatchingUp(t *testing.T) {
	const second = int64(time.Second)
	var p peer
	now, commit, match := 100*second, uint64(1000), uint64(0)
	step := func(late bool) {
		t.Helper()
		now += second / 10
		if p.follow(match, commit, now); p.late != late {
			t.Errorf("at %d: %d of %d: late %v", now, match, commit, p.late)
		}
	}
	for range 5 {
		step(false) // a new leader waits for the first answer
	}
	step(false)
	step(true)
	match = 1000
	step(false)
	for range 100 {
		commit += 500
		step(false)
		match = commit - 100
	}
	for range 60 {
		commit += 500
		p.follow(match, commit, now)
		now += second / 10
	}
	step(true)
	match = 30_000
	step(true)
	match = commit
	step(false)
}

// The status of both members shows a refusal and its reason until the refusal ends.
func TestStatusOfRefused(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		l := sim.nodeOf(sim.leader())
		m := sim.nodes[l.id%3]
		old, now := m.member.Handshake(), m.member.Handshake
		sim.mustPut(l.member, 5, "hello")
		time.Sleep(time.Second)
		for _, c := range []struct {
			handshake  Handshake
			mustRejoin bool
			refused    string
		}{
			{old, true, plain(ErrRolledBack)},
			{Handshake{Starts: old.Starts}, false, plain(ErrTooOld) + ": it supports level 0, but level 3 is needed"},
			{now(), false, ""},
		} {
			l.member.AcceptHandshake(m.id, c.handshake)
			if s := sim.statusOf(l); s.of(m.id).MustRejoin != c.mustRejoin || s.of(m.id).Refused != c.refused {
				t.Errorf("after %+v: %+v", c.handshake, s.of(m.id))
			}
		}
		sim.part(m)
		time.Sleep(5 * time.Second)
		m.member.Rejected(l.id, ErrTooOld)
		if s := sim.statusOf(m); s.of(l.id).Refuses != plain(ErrTooOld) {
			t.Errorf("the refused member reports %+v", s.of(l.id))
		}
		sim.heal()
		sim.until("it is taken in again", func() bool { s := sim.statusOf(m); return s.of(l.id).Refuses == "" })
	})
}
