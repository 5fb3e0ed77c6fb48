package cluster

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/cluster/core"
	"github.com/beanpole-mq/beanpole/internal/cluster/entry"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
)

// turnState is owned by the turn.
//
// Invariants:
//  1. office != 0 only if the engine has the facts of all entries up to applied, and what was decided in that
//     office, and nothing else.
//  2. While spoilt the engine counts no more: nothing is applied or decided before it is made again.
type turnState struct {
	journal *journal.Journal
	applied journal.Applied // the journal and the engine have the entries up to here
	told    journal.Applied // the raft loop knows that the journal has these durably
	decoder entry.Decoder

	office  uint64 // in which the engine decides; 0: it follows
	spoilt  bool
	walking bool   // engine and journal do not have everything: see walk.go
	wholeAt uint64 // from this entry on the engine has a state that the log says
	builder entry.Builder
	facts   int   // in builder
	retryAt int64 // when to try to append again what the journal could not take, on the engine's clock; 0: now

	closeErr error // of the journal
}

// flight is what was proposed by a turn.
type flight struct {
	last   uint64 // the number of its last proposal in its office
	weight weight
}

// weight is how much something is.
type weight struct {
	bytes int64
	facts int
}

// A turn waits as long as more than this is proposed and not committed.
const (
	maxPendingBytes = 64 << 20
	maxPendingFacts = 200_000
)

// turnLog is the member as the broker's Log.
type turnLog struct{ *Member }

// target is what Sync has to wait for: the turns that were flushed.
type target struct {
	office uint64
	last   uint64 // number of the last proposal
}

// admit is asked by the engine before each change.
func (m *Member) admit(kind engine.ChangeKind, tube string, body int) engine.Outcome {
	if m.turn.office == 0 {
		return engine.Failed
	}
	return m.turn.journal.Admit(kind, tube, body)
}

// mayDecide reports whether the engine's office is in force. If not, and there was one, the engine is
// spoilt.
func (m turnLog) mayDecide() bool {
	t := &m.turn
	m.mu.Lock()
	in := t.office != 0 && m.shared.serving() == t.office
	m.mu.Unlock()
	if t.office != 0 && !in {
		m.depose()
	}
	return in
}

// Append implements broker.Log.
func (m turnLog) Append(changes []engine.Change) error {
	t := &m.turn
	if !m.mayDecide() {
		m.depose() // the engine has done what no entry will have
		return broker.ErrDeposed
	}
	t.journal.Executed(changes)
	for i := range changes {
		t.builder.Add(&changes[i], m.clock.epoch)
	}
	t.facts += len(changes)
	return nil
}

// Flush implements broker.Log: it proposes what was appended.
func (m turnLog) Flush() (durable bool, err error) {
	t := &m.turn
	switch {
	case t.spoilt:
		return false, broker.ErrDeposed
	case t.office == 0:
		return true, nil // those who watch a follower are told what it has
	case !m.mayDecide():
		return false, broker.ErrDeposed
	}
	if t.facts == 0 {
		return m.isLeased(), nil
	}
	entries := t.builder.Entries(m.clock.time())
	w := weight{facts: t.facts}
	for _, e := range entries {
		w.bytes += int64(len(e))
	}
	t.facts = 0
	if !m.depart(uint64(len(entries)), w) {
		m.depose()
		return false, broker.ErrDeposed
	}
	office := t.office
	m.mail.post(func() {
		if err := m.raft.core.Propose(office, entries...); err != nil {
			m.opt.Logger.Debug("the entries of a turn are refused", "office", office, "err", err)
		}
	})
	return false, nil
}

// isLeased reports whether nobody else can lead now.
func (m *Member) isLeased() bool {
	now := m.opt.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	return now < m.shared.leased
}

// depart notes that entries are about to be proposed. If too much is under way already it waits; the office may end
// meanwhile, and then it returns false.
func (m *Member) depart(entries uint64, w weight) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.shared.serving() == m.turn.office && (m.weight.bytes > maxPendingBytes || m.weight.facts > maxPendingFacts) {
		m.changed.Wait()
	}
	if m.shared.serving() != m.turn.office {
		return false
	}
	m.target.last += entries
	m.pending = append(m.pending, flight{m.target.last, w})
	m.weight.bytes += w.bytes
	m.weight.facts += w.facts
	return true
}

// land forgets what is committed of what was proposed. The caller holds mu.
func (m *Member) land() {
	n := 0
	for n < len(m.pending) && (m.shared.office != m.target.office || m.pending[n].last <= m.shared.committed) {
		m.weight.bytes -= m.pending[n].weight.bytes
		m.weight.facts -= m.pending[n].weight.facts
		n++
	}
	m.pending = m.pending[n:]
}

// Sync implements broker.Log: it waits until everything that was proposed is committed, and nobody else
// can lead.
func (m turnLog) Sync() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.target
	if t.office == 0 {
		return nil // what is not settled has failed by itself
	}
	in := func() bool { return m.shared.office == t.office }
	for in() && m.shared.committed < t.last {
		m.changed.Wait()
	}
	if in() && m.opt.Now() >= m.shared.leased {
		question := m.ask()
		for in() && (*question == 0 || m.shared.confirmed < *question) {
			m.changed.Wait()
		}
	}
	if !in() {
		return broker.ErrDeposed
	}
	return nil
}

// ask asks a majority whether this member still leads. The number of the question is there later, under mu.
func (m *Member) ask() *uint64 {
	question := new(uint64)
	m.mail.post(func() {
		n := m.raft.core.Ask(m.opt.Now())
		m.mu.Lock()
		defer m.mu.Unlock()
		*question = n
		m.changed.Broadcast()
	})
	return question
}

// Housekeep implements broker.Log: it applies a part of what is committed.
func (m turnLog) Housekeep(now int64) (next int64) {
	t := &m.turn
	if t.office != 0 {
		m.mayDecide()
	}
	if t.spoilt {
		return engine.Never // the goroutine of turns makes another engine
	}
	next = m.apply(now)
	if t.office == 0 {
		next = min(next, m.takeOffice(now))
	}
	if _, err := t.journal.Flush(); err != nil {
		m.opt.Logger.Debug("the journal cannot be written", "err", err) // it says so itself, and heals
	}
	next = min(next, t.journal.Housekeep(now))
	m.reportSynced()
	return next
}

// Close implements broker.Log.
func (m turnLog) Close() error {
	m.turn.closeErr = m.turn.journal.Close()
	return m.turn.closeErr
}

// reportSynced tells the raft loop what the journal has durably.
func (m *Member) reportSynced() {
	t := &m.turn
	if s := t.journal.Synced(); s.Index > t.told.Index {
		t.told = s
		m.mail.post(func() { m.journalSynced(raftlog.Position{Index: s.Index, Term: s.Term}) })
	}
}

// applyQueue has entries that are committed, and not applied.
type applyQueue struct {
	core  *core.Core // that has committed them
	waits []core.Apply
	at    int // entries of the first that are done
}

func (q *applyQueue) add(apply []core.Apply) { q.waits = append(q.waits, apply...) }

// next returns the next entry, or nil.
func (q *applyQueue) next() *raftpb.Entry {
	if len(q.waits) == 0 {
		return nil
	}
	return q.waits[0].Entries[q.at]
}

// took removes the next entry. If it was the last of an Apply, it returns that one's responses.
func (q *applyQueue) took() (responses []*raftpb.Message) {
	q.at++
	if first := &q.waits[0]; q.at == len(first.Entries) {
		responses = first.Responses
		q.waits, q.at = q.waits[1:], 0
	}
	return responses
}

// Limits of what a turn applies.
const (
	maxApplyBytes = 1 << 20
	maxApplyFacts = 5000
)

// apply applies what is committed, as much as a turn can bear.
func (m *Member) apply(now int64) (next int64) {
	t := &m.turn
	switch {
	case t.walking:
		return engine.Never
	case now < t.retryAt:
		return t.retryAt
	}
	if t.retryAt != 0 {
		t.retryAt = 0
		m.setStuck(false)
	}
	for done := (weight{}); done.bytes < maxApplyBytes && done.facts < maxApplyFacts; {
		m.mu.Lock()
		e := m.queue.next()
		over := t.office != 0 && m.shared.serving() != t.office
		m.mu.Unlock()
		if over { // the entry may be of another leader, and the journal would take it for one of this office
			m.depose()
		}
		if e == nil || over {
			return engine.Never
		}
		facts, err := m.applyEntry(e)
		if err != nil {
			m.opt.Logger.Warn("the journal cannot take what the cluster has agreed on; it is tried again", "entry", e.GetIndex(), "err", err)
			t.retryAt = now + int64(recoverPause)
			m.setStuck(true)
			return t.retryAt
		}
		if t.spoilt {
			return engine.Never
		}
		done.bytes += int64(len(e.GetData()))
		done.facts += facts
		m.mu.Lock()
		responses, of := m.queue.took(), m.queue.core
		m.mu.Unlock()
		if len(responses) > 0 {
			m.answer(of, responses)
		}
	}
	return now
}

func (m *Member) setStuck(stuck bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stuck = stuck
}

// applyEntry lets the journal have the facts of an entry and, unless it has decided them, the engine. It returns how many
// they were. An error is one of the journal; then the same entry comes again.
func (m *Member) applyEntry(e *raftpb.Entry) (facts int, err error) {
	t := &m.turn
	if e.GetIndex() <= t.applied.Index {
		return 0, nil // the journal has it; the core wants to see it for the members' roles
	}
	at := journal.Applied{Index: e.GetIndex(), Term: e.GetTerm(), Stamp: t.applied.Stamp}
	var changes []engine.Change
	if e.GetType() == raftpb.EntryNormal && len(e.GetData()) > 0 {
		if at.Stamp, changes, err = t.decoder.Decode(e.GetData(), m.clock.epoch); err != nil {
			m.fail(fmt.Errorf("cluster: entry %d: %w", e.GetIndex(), err))
			t.spoilt = true
			return 0, nil
		}
	}
	if err := t.journal.AppendCommitted(changes, at); err != nil {
		return 0, err
	}
	t.applied = at
	return len(changes), nil
}
