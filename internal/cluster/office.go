package cluster

import (
	"fmt"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A Leadership says who leads, as far as this member knows.
type Leadership struct {
	Leader uint64 // id; 0: nobody is known
	Term   uint64
	Office uint64 // not 0: this member decides. Each has its own number in the life of a process
}

// Lead returns who leads.
func (m *Member) Lead() Leadership {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lead
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
	if m.shared.serving() == m.target.office {
		now.Office = m.target.office
	}
	if now != m.lead {
		m.lead = now
		m.announce()
	}
}

// announce lets all look again who watch. The caller holds mu.
func (m *Member) announce() {
	close(m.watch)
	m.watch = make(chan struct{})
}

// takeOffice lets the engine decide if the core is in office. Then everything that came before was applied.
func (m *Member) takeOffice(now int64) (next int64) {
	t := &m.turn
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shared.serving() == 0 {
		return engine.Never
	}
	t.office = m.shared.serving()
	m.target = target{office: t.office}
	m.pending, m.weight = nil, weight{}
	m.broker.Follow(false)
	before := m.clock.time()
	m.clock.notBefore(t.applied.Stamp + 1)
	if jump := m.clock.time() - before; jump > int64(time.Hour) {
		m.opt.Logger.Warn("the cluster's time was far ahead of this machine's clock", "by", time.Duration(jump))
	}
	m.opt.Logger.Info("this member leads the cluster", "term", m.shared.term, "entry", t.applied.Index)
	m.tell()
	return now // what is due
}

// depose notes, in a turn, that the engine has done what may never have been.
func (m *Member) depose() {
	t := &m.turn
	if t.spoilt {
		return
	}
	if t.office != 0 {
		m.opt.Logger.Warn("this member does not lead the cluster any more", "entry", t.applied.Index)
	}
	t.office, t.spoilt, t.facts = 0, true, 0
	t.builder.Reset()
	m.spoilt.Store(true)
	signal(m.turns)
}

// runTurns runs turns for the member itself, and makes another engine when the present one is spoilt.
func (m *Member) runTurns() {
	for {
		select {
		case <-m.turns:
		case <-m.stop:
			return
		}
		for m.wantsTurn() && !m.stopped() {
			m.broker.Look(func(*engine.Engine, int64) {}) // Housekeep does it
			if m.spoilt.Load() {
				m.rebuild()
			}
		}
	}
}

// wantsTurn reports whether a turn has something to do for the member.
func (m *Member) wantsTurn() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spoilt.Load() || m.queue.next() != nil && !m.stuck || m.shared.serving() != m.target.office
}

func (m *Member) stopped() bool {
	select {
	case <-m.stop:
		return true
	default:
		return false
	}
}

// rebuild makes the engine what the journal says.
func (m *Member) rebuild() {
	m.broker.Call(func(*engine.Engine, int64) {}) // then all turns of the office are settled
	m.mail.post(func() { m.raft.settled = true })
	if m.opt.Deposed != nil {
		m.opt.Deposed()
	}
	m.broker.Replace(func() *engine.Engine {
		began := time.Now()
		eng, err := m.readAgain()
		if err != nil {
			m.fail(err)
			return engine.New(engine.Options{})
		}
		st := eng.Stats()
		m.opt.Logger.Info("the queue was read from the journal again", "jobs", st.Ready+st.Delayed+st.Buried, "took", time.Since(began))
		return eng
	})
	m.mail.post(func() { m.raft.core.Rebuilt() })
}

// readAgain closes the journal and reads it into another engine. It is called within a turn.
func (m *Member) readAgain() (*engine.Engine, error) {
	t := &m.turn
	before := t.applied.Index
	if err := t.journal.Close(); err != nil {
		m.opt.Logger.Warn("the journal could not be closed in an orderly way", "err", err)
	}
	eng, err := m.openJournal()
	if err != nil {
		return nil, fmt.Errorf("cluster: the journal cannot be read again: %w", err)
	}
	t.spoilt, t.retryAt = false, 0
	m.spoilt.Store(false)
	m.broker.Follow(true)
	m.mu.Lock()
	m.target, m.pending, m.weight = target{}, nil, weight{}
	m.mu.Unlock()
	for t.applied.Index < before { // the journal has lost what it could not write; the log still has it
		entries, err := m.log.Entries(t.applied.Index+1, before+1, maxApplyBytes)
		if err != nil {
			return nil, fmt.Errorf("cluster: entry %d: %w", t.applied.Index+1, err)
		}
		for _, e := range entries {
			if _, err := m.applyEntry(e); err != nil {
				return nil, fmt.Errorf("cluster: the journal takes no facts: %w", err)
			}
		}
	}
	return eng, nil
}
