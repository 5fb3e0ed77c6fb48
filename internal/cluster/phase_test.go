package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

var phaseNames = []string{"loading", "following", "activating", "leading", "draining", "installing", "failed"}

// Each method of lifecycle is allowed in the phases in the table, and panics in all
// others. There are no other transitions.
func TestPhases(t *testing.T) {
	moves := []struct {
		name string
		do   func(m *lifecycle)
		to   string // next phase for each phase, in order: its first letter, "." for no change, or "!" for a panic
	}{
		{"follow", (*lifecycle).follow, "f!f!ff!"},
		{"follow at Raft's leader", func(m *lifecycle) { m.shared.lead.Leader = 1; m.follow() }, "a!a!aa!"},
		{"activate", (*lifecycle).activate, "!a!!!!!"},
		{"lead", func(m *lifecycle) { m.shared.lead.Epoch = 7; m.lead() }, "!!l!!!!"},
		{"drain", (*lifecycle).drain, "!!!d!!!"},
		{"load", (*lifecycle).load, "!!!!o!!"},
		{"install", (*lifecycle).install, "iii!i!!"},
		{"fail", func(m *lifecycle) { m.mu.Unlock(); m.fail(errors.New("broken")); m.mu.Lock() }, "xxxxxx."},
	}
	letters := map[byte]phase{'o': loading, 'f': following, 'a': activating, 'l': leading, 'd': draining, 'i': installing, 'x': failed}
	for _, move := range moves {
		for from := range phaseNames {
			m := &lifecycle{phase: phase(from), watch: make(chan struct{}), turns: make(chan struct{}, 1)}
			m.ctx, m.end = context.WithCancel(t.Context())
			m.self, m.logger = 1, slog.New(slog.DiscardHandler)
			if m.changed.L = &m.mu; m.phase == leading || m.phase == draining {
				m.proposals.epoch = 3
			}
			panicked := false
			func() {
				m.mu.Lock()
				defer m.mu.Unlock()
				defer func() { panicked = recover() != nil }()
				move.do(m)
			}()
			switch want := move.to[from]; {
			case want == '!' != panicked:
				t.Errorf("%s, %s: it panics: %v", phaseNames[from], move.name, panicked)
			case want == '.' && m.phase != phase(from), letters[want] != m.phase && want != '!' && want != '.':
				t.Errorf("%s, %s: it is %s", phaseNames[from], move.name, phaseNames[m.phase])
			}
			if leads := m.phase == leading; !panicked && leads != (m.known.Epoch != 0) {
				t.Errorf("%s, %s: Lead is %+v", phaseNames[from], move.name, m.known)
			}
		}
	}
}

// checkPhase returns the contradiction between a member's fields and its phase, if any.
func (m *Member) checkPhase() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range []struct {
		what    string
		is, may bool
	}{
		{"it has an epoch", m.proposals.epoch != 0, m.phase == leading || m.phase == draining || m.phase == failed},
		{"it has none", m.proposals.epoch == 0, m.phase != leading && m.phase != draining},
		{"Lead says that it leads", m.known.Epoch != 0, m.phase == leading},
		{"Lead does not say that it leads", m.known.Epoch == 0, m.phase != leading},
		{"the core is in its epoch", m.shared.offered() == m.proposals.epoch, m.phase != draining},
		{"the core is in another epoch", m.shared.offered() != m.proposals.epoch, m.phase != leading},
		{"it is Raft's leader", m.shared.lead.Leader == m.opt.Self.ID, m.phase != following && m.phase != failed},
		{"it is not Raft's leader", m.shared.lead.Leader != m.opt.Self.ID, m.phase != activating && m.phase != leading},
		{"something is proposed", len(m.proposals.pending) > 0, m.proposals.epoch != 0},
		{"it has failed", m.err != nil, m.phase == failed},
	} {
		if c.is && !c.may {
			return fmt.Errorf("%s, and %s: %+v, epoch %d, %+v", phaseNames[m.phase], c.what, m.shared, m.proposals.epoch, m.known)
		}
	}
	return nil
}

// A member that has applied changes that might never be committed reads its journal
// again. It drops the old engine first, so it never needs memory for two engines.
func TestOneEngine(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		l := sim.leader()
		var old weak.Pointer[engine.Engine]
		l.Broker().View(func(e *engine.Engine, _ int64) { old = weak.Make(e) })
		read, kept := atomic.Bool{}, atomic.Bool{}
		sim.nodeOf(l).trouble.spoil(func(name string) bool {
			if isOfJournal(name) && l.currentPhase() == loading {
				runtime.GC()
				read.Store(true)
				kept.Store(old.Value() != nil)
			}
			return false
		})
		sim.part(sim.nodeOf(l))
		if _, err := sim.put(l, "mail", engine.Spec{TTR: 60}, "not acknowledged"); err == nil {
			t.Fatal("a put without a majority was acknowledged")
		}
		sim.heal()
		time.Sleep(time.Second)
		if !read.Load() || kept.Load() {
			t.Errorf("the journal was read again: %v; the old engine was there: %v", read.Load(), kept.Load())
		}
	})
}
