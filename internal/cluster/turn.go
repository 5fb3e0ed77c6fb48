package cluster

import (
	"errors"
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
//  1. epoch != 0 only if the engine has the facts of all entries up to applied, and what was decided in that
//     epoch, and nothing else.
//  2. epoch is that of Member while the member is leading, and at most until the end of the turn in which it
//     begins to drain.
type turnState struct {
	journal *journal.Journal
	applied journal.Applied // the journal and the engine have the entries up to here
	told    journal.Applied // the raft loop knows that the journal has these durably
	large   uint64          // the last entry that Member.unsynced counts
	decoder entry.Decoder

	epoch   uint64 // in which this turn decides; 0: it does not
	builder entry.Builder
	facts   int     // in builder
	census  *Census // hears of the facts that are applied; nil: nobody does
	retryAt int64   // when to try to append again what the journal could not take, on the engine's clock; 0: now
	refuses bool    // the journal takes no jobs
	full    bool    // for it has no room for them

	closeErr error // of the journal
}

// proposals are what the turns of an epoch want committed. With Member.mu.
type proposals struct {
	last    uint64   // number of the last entry that was flushed
	flushed [][]byte // entries up to that one that are not proposed
	pending []flight // what was flushed and is not committed, in order
	weight  weight   // of pending
	lost    bool     // the engine has done what may never be committed
}

// flight is what a turn has flushed.
type flight struct {
	last   uint64 // the number of its last entry in its epoch
	weight weight
}

// weight is how much something is.
type weight struct {
	bytes int64
	facts int
}

// A turn waits as long as more than this is flushed and not committed.
const (
	maxPendingBytes = 64 << 20
	maxPendingFacts = 200_000
)

// turnLog is the member as the broker's Log.
type turnLog struct{ *Member }

// admit is asked by the engine before each change.
func (m *Member) admit(kind engine.ChangeKind, tube string, body int) engine.Outcome {
	if m.turn.epoch == 0 {
		return engine.Failed
	}
	if m.journaling.begin() { // it may wait for another segment
		defer m.journaling.end()
	}
	return m.turn.journal.Admit(kind, tube, body)
}

// isWhole reports, within a turn, whether the engine is as the log says at applied, or has decided what comes after that.
func (m *Member) isWhole() bool {
	t := &m.turn
	return m.now().applies() && (t.epoch != 0 || t.journal.InFlight() == 0)
}

// mayPropose reports whether the engine's epoch is in force. What a turn has done when the leadership is about to
// go to another member is still proposed; no later turn decides anything.
func (m *Member) mayPropose() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.turn.epoch != 0 && m.shared.epoch == m.turn.epoch
}

// Append implements broker.Log.
func (m turnLog) Append(changes []engine.Change) error {
	t := &m.turn
	if !m.mayPropose() {
		m.endEpoch(true)
		return broker.ErrDeposed
	}
	t.journal.Executed(changes)
	for i := range changes {
		t.builder.Add(&changes[i], m.clock.zero)
	}
	t.facts += len(changes)
	return nil
}

// Flush implements broker.Log: what was appended is proposed by the next Sync, with what other turns have flushed by then.
func (m turnLog) Flush() (durable bool, err error) {
	t := &m.turn
	switch {
	case t.epoch == 0:
		switch m.now() {
		case draining, loading, installing, failed:
			return false, broker.ErrDeposed
		}
		return true, nil // those who watch a follower are told what it has
	case !m.mayPropose():
		m.endEpoch(t.facts > 0)
		return false, broker.ErrDeposed
	case t.facts == 0:
		return m.isLeased(), nil
	}
	entries := t.builder.Entries(m.clock.time())
	w := weight{facts: t.facts}
	for _, e := range entries {
		w.bytes += int64(len(e))
	}
	t.facts = 0
	if !m.depart(entries, w) {
		m.endEpoch(true)
		return false, broker.ErrDeposed
	}
	return false, nil
}

// isLeased reports whether nobody else can lead now.
func (m *Member) isLeased() bool {
	now := m.opt.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	return now < m.shared.leased
}

// depart notes that entries are to be proposed. If too much is under way already it waits; the epoch may end
// meanwhile, and then it returns false.
func (m *Member) depart(entries [][]byte, w weight) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &m.proposals
	for m.shared.epoch == m.turn.epoch && (p.weight.bytes > maxPendingBytes || p.weight.facts > maxPendingFacts) {
		m.propose()
		m.changed.Wait()
	}
	if m.shared.epoch != m.turn.epoch {
		return false
	}
	p.flushed = append(p.flushed, entries...)
	p.last += uint64(len(entries))
	p.pending = append(p.pending, flight{p.last, w})
	p.weight.bytes += w.bytes
	p.weight.facts += w.facts
	return true
}

// propose proposes what was flushed. The caller holds mu.
func (m *Member) propose() {
	epoch, entries := m.epoch, m.proposals.flushed
	if len(entries) == 0 {
		return
	}
	m.proposals.flushed = nil
	m.mail.post(proposed{epoch, entries})
}

// land forgets what is committed of what was proposed. When the epoch has ended nobody knows whether the rest ever will be.
// The caller holds mu.
func (m *Member) land() {
	p := &m.proposals
	if m.shared.epoch != m.epoch {
		*p = proposals{last: p.last, lost: p.lost || len(p.pending) > 0}
		return
	}
	n := 0
	for n < len(p.pending) && p.pending[n].last <= m.shared.committed {
		p.weight.bytes -= p.pending[n].weight.bytes
		p.weight.facts -= p.pending[n].weight.facts
		n++
	}
	p.pending = p.pending[n:]
}

// Sync implements broker.Log: it proposes everything that was flushed, and waits until that is committed, and nobody
// else can lead.
func (m turnLog) Sync() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	epoch, last := m.epoch, m.proposals.last
	if epoch == 0 {
		return nil // what is not settled has failed by itself
	}
	m.propose()
	in := func() bool { return m.shared.epoch == epoch }
	for in() && m.shared.committed < last {
		m.changed.Wait()
	}
	if in() && m.opt.Now() >= m.shared.leased {
		question := new(uint64)
		m.mail.post(asked{question})
		for in() && (*question == 0 || m.shared.confirmed < *question) {
			m.changed.Wait()
		}
	}
	if !in() {
		return broker.ErrDeposed
	}
	return nil
}

// Housekeep implements broker.Log: it applies a part of what is committed.
func (m turnLog) Housekeep(now int64) (next int64) {
	t := &m.turn
	phase := m.now()
	if t.epoch != 0 && phase != leading {
		m.endEpoch(false)
	}
	if !phase.applies() {
		return engine.Never // the goroutine of turns sees to it
	}
	m.journaling.begin()
	defer m.journaling.end()
	next = m.apply(now)
	next = min(next, m.beginEpoch(now))
	if _, err := t.journal.Flush(); err != nil {
		m.opt.Logger.Debug("the journal cannot be written", "err", err) // it says so itself, and heals
	}
	next = min(next, t.journal.Housekeep(now))
	m.reportSynced()
	m.reportRefusal()
	return next
}

// Close implements broker.Log.
func (m turnLog) Close() error {
	m.turn.closeErr = m.turn.closeJournal()
	return m.turn.closeErr
}

// closeJournal closes the journal, if there is one.
func (t *turnState) closeJournal() error {
	j := t.journal
	if j == nil {
		return nil
	}
	t.journal = nil
	return j.Close()
}

// reportSynced tells the raft loop what the journal has durably.
func (m *Member) reportSynced() {
	t := &m.turn
	s := t.journal.Synced()
	if s.Index >= t.large {
		m.unsynced.Store(0)
	}
	if s.Index > t.told.Index {
		t.told = s
		m.mail.post(journalSynced{raftlog.Position{Index: s.Index, Term: s.Term}})
	}
}

// reportRefusal tells the raft loop when the journal begins to refuse jobs, and when it takes them again. While it has no room for
// them, Raft's log makes some.
func (m *Member) reportRefusal() {
	t := &m.turn
	if full := t.journal.IsFull(); full != t.full {
		t.full = full
		m.disk.setCramped(full)
	}
	refuses := t.retryAt != 0 || t.journal.Refuses()
	if refuses == t.refuses {
		return
	}
	t.refuses = refuses
	m.mail.post(journalRefuses{m.opt.Now(), refuses})
}

// applyQueue has entries that are committed, and not applied.
type applyQueue struct {
	waits []core.Apply
	at    int // entries of the first that are done
}

func (q *applyQueue) add(apply []core.Apply) { q.waits = append(q.waits, apply...) }

func (q *applyQueue) isEmpty() bool { return len(q.waits) == 0 }

// next returns the next entry, or nil.
func (q *applyQueue) next() *raftpb.Entry {
	if q.isEmpty() {
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
	if now < t.retryAt && t.retryAt <= now+int64(recoverPause) { // else the cluster's time has been set back since
		return t.retryAt
	}
	t.retryAt = 0
	for done := (weight{}); done.bytes < maxApplyBytes && done.facts < maxApplyFacts; {
		m.mu.Lock()
		e := m.queue.next()
		phase := m.phase
		m.mu.Unlock()
		if t.epoch != 0 && phase != leading { // the entry may be of another leader, and the journal would take it for one of this epoch
			m.endEpoch(false)
		}
		if e == nil || !phase.applies() {
			return engine.Never
		}
		facts, err := m.applyEntry(e)
		if errors.Is(err, journal.ErrNotExecuted) || errors.Is(err, errUnreadable) {
			m.fail(fmt.Errorf("cluster: entry %d: %w", e.GetIndex(), err))
			return engine.Never
		}
		if err != nil {
			m.opt.Logger.Warn("the journal cannot take what the cluster has agreed on; it is tried again", "entry", e.GetIndex(), "err", err)
			t.retryAt = now + int64(recoverPause)
			return t.retryAt
		}
		done.bytes += int64(len(e.GetData()))
		done.facts += facts
		m.mu.Lock()
		responses := m.queue.took()
		m.mu.Unlock()
		if len(responses) > 0 {
			m.mail.post(finished{responses})
		}
	}
	return now
}

// errUnreadable is wrapped by the error of an entry that this version cannot read.
var errUnreadable = errors.New("the entry cannot be read")

// applyEntry lets the journal have the facts of an entry and, unless it has decided them, the engine. It returns how many
// they were. After an error of the journal the same entry comes again.
func (m *Member) applyEntry(e *raftpb.Entry) (facts int, err error) {
	t := &m.turn
	if e.GetIndex() <= t.applied.Index {
		return 0, nil // the journal has it; the core wants to see it for the members' roles
	}
	at := journal.Applied{Index: e.GetIndex(), Term: e.GetTerm(), Stamp: t.applied.Stamp}
	var changes []engine.Change
	if e.GetType() == raftpb.EntryNormal && len(e.GetData()) > 0 {
		if at.Stamp, changes, err = t.decoder.Decode(e.GetData(), m.clock.zero); err != nil {
			return 0, fmt.Errorf("%w: %w", errUnreadable, err)
		}
	}
	if n := int64(len(e.GetData())); n > maxApplyBytes && t.large != at.Index {
		t.large = at.Index
		m.unsynced.Add(n)
	}
	if err := t.journal.AppendCommitted(changes, at); err != nil {
		return 0, err
	}
	t.applied = at
	if t.census != nil {
		t.census.note(at.Index, changes)
	}
	return len(changes), nil
}
