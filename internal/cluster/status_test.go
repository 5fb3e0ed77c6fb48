package cluster

import (
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/cluster/status"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// statusOf returns what a member knows now.
func (w *world) statusOf(m *machine) (s Status) {
	w.t.Helper()
	if !m.member.inLoop(func() { s = m.member.raft.status() }) {
		w.fatalf("member %d has stopped", m.id)
	}
	return s
}

// of returns what is known of a member.
func (s *Status) of(id uint64) (m status.Member) {
	for _, k := range s.Members {
		if k.ID == id {
			m = k
		}
	}
	return m
}

// What a member does not know it leaves out, and what it knew last has an age.
func TestStatusIsNotGuessed(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		time.Sleep(time.Second)
		puts := func() {
			for range 5 {
				_, err := w.put(w.leader(), "mail", engine.Spec{TTR: 60}, "hello")
				w.must(err)
			}
		}
		puts()
		w.must(w.leader().Transfer(t.Context(), 0))
		for began := time.Now(); time.Since(began) < time.Second; time.Sleep(time.Millisecond) { // also while the new one has heard nobody
			for _, m := range w.machines {
				s := w.statusOf(m)
				for _, k := range s.Members {
					if k.Progress != nil && k.Lag > 5 || k.ID == m.id && k.Progress == nil {
						t.Fatalf("member %d says of %d: %+v", m.id, k.ID, k.Progress)
					}
					if k.ID != m.id && s.Leader != m.id && k.Progress != nil {
						t.Fatalf("member %d does not lead, and says of %d: %+v", m.id, k.ID, k.Progress)
					}
				}
			}
		}
		l := w.machineOf(w.leader())
		lost := w.machines[l.id%3]
		had := w.statusOf(lost)
		w.part(lost)
		puts()
		time.Sleep(20 * time.Second)
		s := w.statusOf(l)
		k := s.of(lost.id)
		if k.Reachable || k.Heard == nil || *k.Heard < 18 || *k.Heard > 20 || k.Progress == nil || k.Applied != had.of(lost.id).Applied || k.Lag != s.Commit-k.Applied {
			t.Errorf("the leader says %+v", k)
		}
		if s.Since < 20 || s.Since > 22 {
			t.Errorf("the leader has led for %d s", s.Since)
		}
		if own := w.statusOf(lost); own.Leader != 0 || own.Since < 16 || own.Since > 20 || own.of(l.id).Progress != nil || own.of(lost.id).Lag != 0 {
			t.Errorf("who is cut off says %+v", own)
		}
		w.heal()
	})
}

// Who is refused, and why, is known at both ends until it is over.
func TestStatusOfRefused(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		l := w.machineOf(w.leader())
		m := w.machines[l.id%3]
		old, now := m.member.Handshake(), m.member.Handshake
		for range 5 {
			_, err := w.put(l.member, "mail", engine.Spec{TTR: 60}, "hello")
			w.must(err)
		}
		time.Sleep(time.Second)
		for _, c := range []struct {
			handshake  Handshake
			mustRejoin bool
			refused    string
		}{
			{old, true, plain(ErrRolledBack)},
			{Handshake{Starts: old.Starts}, false, plain(ErrTooOld) + ": it knows level 0, and level 1 is needed"},
			{now(), false, ""},
		} {
			l.member.AcceptHandshake(m.id, c.handshake)
			if s := w.statusOf(l); s.of(m.id).MustRejoin != c.mustRejoin || s.of(m.id).Refused != c.refused {
				t.Errorf("after %+v: %+v", c.handshake, s.of(m.id))
			}
		}
		w.part(m)
		time.Sleep(5 * time.Second)
		m.member.Rejected(l.id, ErrTooOld)
		if s := w.statusOf(m); s.of(l.id).Refuses != plain(ErrTooOld) {
			t.Errorf("who is refused says %+v", s.of(l.id))
		}
		w.heal()
		w.until("it is taken in again", func() bool { s := w.statusOf(m); return s.of(l.id).Refuses == "" })
	})
}
