package cluster

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"go.etcd.io/raft/v3"

	"github.com/beanpole-mq/beanpole/internal/cluster/core"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A Leadership is this member's view of the leadership.
type Leadership = core.Leadership

// Installing reports whether the member is installing a snapshot. If so, its engine is
// empty.
func (l *lifecycle) Installing() bool { return l.currentPhase() == installing }

// beginEpoch lets the engine make changes if the core offers an epoch. The engine then
// has all entries of earlier leaders.
func (t *turn) beginEpoch(now int64) (next int64) {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	if t.m.phase != activating || t.m.shared.offered() == 0 {
		return engine.Never
	}
	t.epoch = t.m.shared.lead.Epoch
	t.m.clock.notBefore(t.applied.Stamp + 1)
	t.m.opt.Logger.Info("this member leads the cluster", "term", t.m.shared.lead.Term, "entry", t.applied.Index)
	t.m.lead()
	return min(now, t.m.clock.engine()) // because of jobs that are due
}

// endEpoch ends an epoch: later turns make no changes. lost is true if the engine has
// made changes that were not proposed.
func (t *turn) endEpoch(lost bool) {
	if lost {
		t.m.mu.Lock()
		t.m.proposals.lost = true
		t.m.mu.Unlock()
	}
	if t.epoch == 0 {
		return
	}
	t.m.opt.Logger.Warn("this member no longer leads the cluster", "entry", t.applied.Index)
	t.epoch, t.built = 0, 0
	t.builder.Reset()
}

// runTurns runs the member's own turns. It replaces the engine when an epoch ends or a
// snapshot must be installed.
func (m *Member) runTurns() {
	for {
		select {
		case <-m.turns:
		case <-m.Failed():
			return
		}
		m.broker.View(func(*engine.Engine, int64) {}) // Housekeep does the work and requests another turn if necessary
		if m.currentPhase() == draining {
			m.stepDown()
		}
		if m.installDue.Load() {
			m.reload()
		}
	}
}

// stepDown makes the engine follow after all turns of the epoch are settled and the
// server has suspended its clients.
func (m *Member) stepDown() {
	m.broker.Call(func(*engine.Engine, int64) {}) // afterwards all turns of the epoch are settled
	if m.opt.Deposed != nil {
		m.opt.Deposed() // before a transfer, so that no client has a command in progress
	}
	m.mail.post(m.raft.settle)
	if m.reload() {
		m.mail.post(m.raft.core.Reloaded)
	}
}

// reload gives the broker an engine that follows. It returns false if the member stops
// first.
func (m *Member) reload() bool {
	reached := m.replace(0)
	for p := m.currentPhase(); p == loading || p == installing; p = m.currentPhase() {
		if m.sleep(recoverPause); m.stopped() {
			return false
		}
		reached = m.replace(reached)
	}
	return true
}

// replace gives the broker an engine that follows. If all changes of the old engine are
// committed, the broker keeps that engine, but without sessions. Otherwise, or if a
// snapshot replaces the journal, replace creates a new engine from the journal and the
// log. It uses the log up to reached, the last entry that the journal had. If the disk
// fails, the member stays loading or installing. replace returns the value of reached for
// the next attempt.
func (m *Member) replace(reached uint64) uint64 {
	m.broker.Replace(func(eng *engine.Engine) *engine.Engine {
		m.mu.Lock()
		switch {
		case m.installDue.Load() && m.phase != installing && m.phase != failed:
			m.install()
		case m.phase == draining && m.proposals.lost:
			m.load()
		}
		phase := m.phase
		m.mu.Unlock()
		switch phase {
		case draining:
			m.opt.Logger.Info("all changes are committed; keeping the engine without its sessions", "reserved", eng.Stats().Reserved)
			eng.DropSessions(m.clock.engine())
		case loading:
			reached = max(reached, m.turn.applied.Index)
			if eng = m.turn.readAgain(reached); eng == nil {
				return engine.New(engine.Options{})
			}
		case installing:
			if eng = m.turn.readAgain(0); eng == nil {
				return engine.New(engine.Options{})
			}
			m.installDue.Store(false)
			m.mail.post(m.raft.installed)
		default:
			return eng // the member has failed
		}
		m.turn.retryAt = 0
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.phase != failed {
			m.follow()
		}
		return eng
	})
	return reached
}

// readAgain closes the journal and reads it into a new engine, within a turn. It returns
// nil if the caller must try again or the member has failed.
func (t *turn) readAgain(reached uint64) *engine.Engine {
	began := time.Now()
	if err := t.closeJournal(); err != nil {
		t.m.opt.Logger.Warn("the journal could not be closed cleanly", "err", err)
	}
	var eng *engine.Engine
	var err error
	text := "the queue was read from the journal again"
	if t.m.currentPhase() == installing {
		text = "the whole queue was received"
		err = settleSnapshot(t.m.opt.FS, t.m.opt.Dir, t.m.log.State().Cut)
	}
	if err == nil {
		eng, err = t.openJournal()
	}
	if err == nil {
		err = t.applyAgain(reached)
	}
	switch _, ofDisk := errors.AsType[syscall.Errno](err); {
	case ofDisk, errors.Is(err, raft.ErrCompacted): // in these cases, there is a snapshot to install
		t.m.opt.Logger.Error("cannot read the journal again; retrying, without participating until then", "err", err)
		return nil
	case err != nil:
		t.m.fail(fmt.Errorf("cluster: cannot read the journal again: %w", err))
		return nil
	}
	st := eng.Stats()
	t.m.opt.Logger.Info(text, "jobs", st.Ready+st.Delayed+st.Buried, "entry", t.applied.Index, "took", time.Since(began))
	return eng
}

// applyAgain applies the entries that the journal has lost in a failed write and that the
// log still has.
func (t *turn) applyAgain(reached uint64) error {
	for t.applied.Index < reached {
		entries, err := t.m.log.Entries(t.applied.Index+1, reached+1, maxApply)
		if err != nil {
			return fmt.Errorf("entry %d: %w", t.applied.Index+1, err)
		}
		for _, e := range entries {
			if _, err := t.applyEntry(e); err != nil {
				return fmt.Errorf("entry %d: %w", e.GetIndex(), err)
			}
		}
	}
	return nil
}
