package cluster

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A Leadership says who leads, as far as this member knows.
type Leadership struct {
	Leader uint64 // id; 0: nobody is known
	Term   uint64
	Epoch  uint64 // not 0: this member decides. Each has its own number in the life of a process
}

// Lead returns who leads.
func (m *Member) Lead() Leadership {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lead
}

// Partial reports whether the member is receiving the queue, so that its engine has only a part of it.
func (m *Member) Partial() (partial bool) {
	m.inLoop(func() { partial = m.raft.partial })
	return partial
}

// Watch returns a channel that is closed at the next change of Lead.
func (m *Member) Watch() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.watch
}

// tell tells those who watch what has changed. This member leads for them only while its engine decides. The caller holds mu.
func (m *Member) tell() {
	now := Leadership{Leader: m.shared.leader, Term: m.shared.term}
	if m.shared.serving() == m.target.epoch {
		now.Epoch = m.target.epoch
	}
	if now != m.lead {
		m.lead = now
		m.announce()
	}
}

// announce wakes all watchers. The caller holds mu.
func (m *Member) announce() {
	close(m.watch)
	m.watch = make(chan struct{})
}

// activate lets the engine decide if the core is active. Then everything that came before was applied.
func (m *Member) activate(now int64) (next int64) {
	t := &m.turn
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shared.serving() == 0 {
		return engine.Never
	}
	t.epoch = m.shared.serving()
	m.target = target{epoch: t.epoch}
	m.flushed, m.pending, m.weight = nil, nil, weight{}
	m.broker.Follow(false)
	before := m.clock.time()
	m.clock.notBefore(t.applied.Stamp + 1)
	if jump := m.clock.time() - before; jump > int64(time.Hour) {
		m.opt.Logger.Warn("the cluster's time was far ahead of this machine's clock", "by", time.Duration(jump))
	}
	m.opt.Logger.Info("this member leads the cluster", "term", m.shared.term, "entry", t.applied.Index)
	m.tell()
	return min(now, m.clock.engine()) // what is due
}

// serves reports whether the engine's epoch is that in which the member serves clients.
func (m *Member) serves() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shared.serving() == m.turn.epoch
}

// depose notes, in a turn, that the engine's epoch has ended: later turns execute nothing before endEpoch. undone says that
// the engine has done what was not proposed.
func (m *Member) depose(undone bool) {
	t := &m.turn
	if undone {
		m.mu.Lock()
		m.undone = true
		m.mu.Unlock()
	}
	if t.over {
		return
	}
	if t.epoch != 0 {
		m.opt.Logger.Warn("this member does not lead the cluster any more", "entry", t.applied.Index)
	}
	t.epoch, t.over, t.facts = 0, true, 0
	t.builder.Reset()
	m.broker.Follow(true)
	m.over.Store(true)
	signal(m.turns)
}

// runTurns runs turns for the member itself, and ends epochs.
func (m *Member) runTurns() {
	for {
		select {
		case <-m.turns:
		case <-m.stop:
			return
		}
		for m.wantsTurn() && !m.stopped() {
			m.broker.Look(func(*engine.Engine, int64) {}) // Housekeep does it
			if m.over.Load() {
				m.endEpoch()
			}
		}
	}
}

// wantsTurn reports whether a turn has something to do for the member.
func (m *Member) wantsTurn() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.over.Load() || !m.queue.isEmpty() && !m.stuck || m.shared.serving() != m.target.epoch
}

func (m *Member) stopped() bool {
	select {
	case <-m.stop:
		return true
	default:
		return false
	}
}

// endEpoch makes an engine whose epoch has ended one that follows. If all that it has done is committed it only loses its
// sessions. Else it has done what may never have been, and is made again from the journal, and from the log.
func (m *Member) endEpoch() {
	m.broker.Call(func(*engine.Engine, int64) {}) // then all turns of the epoch are settled
	m.mail.post(func() {
		m.raft.settled = true
		m.handOver() // before the core hears of Rebuilt, if it has to resign
	})
	if m.opt.Deposed != nil {
		m.opt.Deposed()
	}
	failed := false
	m.broker.Replace(func(eng *engine.Engine) *engine.Engine {
		if !m.turn.over {
			return eng // it has begun to receive the queue meanwhile
		}
		undone := m.beginFollowing()
		if !undone {
			m.opt.Logger.Info("the engine has done nothing that is not committed: it goes on without its sessions", "reserved", eng.Stats().Reserved)
			eng.DropSessions(m.clock.engine())
			return eng
		}
		began := time.Now()
		again, err := m.readAgain()
		if _, ofDisk := errors.AsType[syscall.Errno](err); ofDisk {
			m.opt.Logger.Error("the journal cannot be read again; it is tried again, and this member takes no part until then", "err", err)
			failed = true
			m.depose(true)
			return eng
		}
		if err != nil {
			m.fail(err)
			return engine.New(engine.Options{})
		}
		st := again.Stats()
		m.opt.Logger.Info("the queue was read from the journal again", "jobs", st.Ready+st.Delayed+st.Buried, "took", time.Since(began))
		return again
	})
	if failed {
		select {
		case <-time.After(recoverPause):
		case <-m.stop:
		}
		return
	}
	m.mail.post(func() { m.raft.core.Rebuilt() })
}

// beginFollowing forgets the epoch that has ended, within a turn. It returns whether the engine has done in it what
// may never be committed.
func (m *Member) beginFollowing() (undone bool) {
	t := &m.turn
	t.over, t.retryAt = false, 0
	m.over.Store(false)
	m.broker.Follow(true)
	m.mu.Lock()
	defer m.mu.Unlock()
	undone = m.undone
	m.target, m.flushed, m.pending, m.weight, m.undone, m.stuck = target{}, nil, nil, weight{}, false, false
	return undone
}

// readAgain closes the journal and reads it into another engine. It is called within a turn.
func (m *Member) readAgain() (*engine.Engine, error) {
	t := &m.turn
	t.reached = max(t.reached, t.applied.Index)
	if err := t.closeJournal(); err != nil {
		m.opt.Logger.Warn("the journal could not be closed in an orderly way", "err", err)
	}
	eng, err := m.openJournal()
	if err != nil {
		return nil, fmt.Errorf("cluster: the journal cannot be read again: %w", err)
	}
	for t.applied.Index < t.reached { // the journal has lost what it could not write; the log still has it
		entries, err := m.log.Entries(t.applied.Index+1, t.reached+1, maxApplyBytes)
		if err != nil {
			return nil, fmt.Errorf("cluster: entry %d: %w", t.applied.Index+1, err)
		}
		for _, e := range entries {
			if _, err := m.applyEntry(e); err != nil {
				return nil, fmt.Errorf("cluster: the journal takes no facts: %w", err)
			}
		}
	}
	t.reached = 0
	return eng, nil
}
