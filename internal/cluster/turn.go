package cluster

import (
	"cmp"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/cluster/core"
	"github.com/beanpole-mq/beanpole/internal/cluster/entry"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
)

// A turn is the part of a member that runs within turns: the broker's Log. Only Sync runs
// outside turns.
//
// Invariants:
//
//  1. If epoch is not 0, the engine has the changes of all entries up to applied, its
//     changes in that epoch, and no others.
//  2. epoch is proposals.epoch while the member is leading, and at most until the end of
//     the turn in which the member starts to drain.
type turn struct {
	m *Member

	journal        *journal.Journal
	applied        journal.Applied // the journal and the engine have the entries up to this one
	reportedSynced journal.Applied // the raft loop was notified that the journal durably has the entries up to this one
	large          uint64          // the last entry that Member.unsynced counts
	decoder        entry.Decoder
	observe        func(entry uint64, changes []engine.Change) // see Member.Observe; can be nil

	epoch   uint64 // the epoch in which this turn can make changes, or 0
	builder entry.Builder
	built   int   // number of changes in builder
	retryAt int64 // time of the next attempt after an error of the journal, on the engine's clock, or 0
	failed  error // the journal's error
	blocked bool  // the journal refuses jobs
	full    bool  // the journal has no space for jobs

	closeErr error // the journal's error
}

// admit is Options.Admit of the engine.
func (t *turn) admit(kind engine.ChangeKind, tube string, body int) engine.Outcome {
	if t.epoch == 0 {
		return engine.Failed
	}
	if t.m.journaling.begin() { // the journal might wait for another segment
		defer t.m.journaling.end()
	}
	return t.journal.Admit(kind, tube, body)
}

// Append implements broker.Log.
func (t *turn) Append(changes []engine.Change) error {
	if !t.m.mayPropose(t.epoch) {
		t.endEpoch(true)
		return broker.ErrDeposed
	}
	t.journal.Stage(changes)
	for i := range changes {
		t.builder.Add(&changes[i], t.m.clock.zero)
	}
	t.built += len(changes)
	return nil
}

// Flush implements broker.Log. The next Sync proposes all flushed entries, including
// those of other turns.
func (t *turn) Flush() (durable bool, err error) {
	switch {
	case t.epoch == 0:
		switch t.m.currentPhase() {
		case draining, loading, installing, failed:
			return false, broker.ErrDeposed
		}
		return true, nil // a follower can answer readers of its engine
	case !t.m.mayPropose(t.epoch):
		t.endEpoch(t.built > 0)
		return false, broker.ErrDeposed
	case t.built == 0:
		return t.m.isLeased(), nil
	}
	entries := t.builder.Entries(t.m.clock.time())
	bytes := 0
	for _, e := range entries {
		bytes += len(e)
	}
	weight := weightOf(bytes, t.built)
	t.built = 0
	if !t.m.enqueue(t.epoch, entries, weight) {
		t.endEpoch(true)
		return false, broker.ErrDeposed
	}
	return false, nil
}

// Sync implements broker.Log. It runs outside turns.
func (t *turn) Sync() error { return t.m.commit() }

// Housekeep implements broker.Log: it applies some of the committed entries.
func (t *turn) Housekeep(now int64) (next int64) {
	phase := t.m.currentPhase()
	if t.epoch != 0 && phase != leading {
		t.endEpoch(false)
	}
	if !phase.applies() {
		return engine.Never // runTurns continues when the engine follows
	}
	t.m.journaling.begin()
	defer t.m.journaling.end()
	next = t.apply(now)
	next = min(next, t.beginEpoch(now))
	if _, err := t.journal.Flush(); err != nil {
		t.m.opt.Logger.Debug("cannot write to the journal", "err", err) // the journal logs the error and heals itself
	}
	next = min(next, t.journal.Housekeep(now))
	t.reportSynced()
	t.reportBlocked()
	return next
}

// Close implements broker.Log.
func (t *turn) Close() error {
	t.closeErr = t.closeJournal()
	return t.closeErr
}

// closeJournal closes the journal, if there is one.
func (t *turn) closeJournal() error {
	j := t.journal
	if j == nil {
		return nil
	}
	t.journal = nil
	return j.Close()
}

// reportSynced notifies the raft loop of the last entry that is durable in the journal.
func (t *turn) reportSynced() {
	s := t.journal.Synced()
	if s.Index >= t.large {
		t.m.unsynced.Store(0)
	}
	if s.Index > t.reportedSynced.Index {
		t.reportedSynced = s
		t.m.mail.post(func() { t.m.raft.cut(s.Index) })
	}
}

// reportBlocked notifies the raft loop when the journal starts to refuse jobs, and when
// it accepts them again. While the journal has no space for jobs, Raft's log frees space.
func (t *turn) reportBlocked() {
	if full := t.journal.IsFull(); full != t.full {
		t.full = full
		t.m.disk.setLowOnSpace(full)
	}
	blocked := t.retryAt != 0 || t.journal.Refuses()
	if blocked == t.blocked {
		return
	}
	t.blocked = blocked
	var why error
	if blocked {
		why = cmp.Or(t.failed, t.journal.Stats().Refusal)
	}
	t.m.ails.update(func(a *ailments) { a.journal = why })
	now := t.m.opt.Now()
	t.m.mail.post(func() { t.m.raft.health.observeJournal(now, blocked) })
}

// applyQueue contains the entries that are committed but not yet applied.
type applyQueue struct {
	waits []core.Apply
	at    int // number of applied entries of the first Apply
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

// pop removes the next entry. After the last entry of an Apply it returns that Apply's
// responses.
func (q *applyQueue) pop() (responses []*raftpb.Message) {
	q.at++
	if first := &q.waits[0]; q.at == len(first.Entries) {
		responses = first.Responses
		*first = core.Apply{} // release its entries, which can be large
		q.waits, q.at = q.waits[1:], 0
	}
	return responses
}

// maxApply is the maximum weight of the entries that a turn applies.
const maxApply = 1 << 20

// apply applies committed entries, within the limits of a turn.
func (t *turn) apply(now int64) (next int64) {
	if now < t.retryAt && t.retryAt <= now+int64(recoverPause) { // a later time was set before the clock was set back
		return t.retryAt
	}
	t.retryAt, t.failed = 0, nil
	for done := int64(0); done < maxApply; {
		t.m.mu.Lock()
		e := t.m.queue.next()
		phase := t.m.phase
		t.m.mu.Unlock()
		if t.epoch != 0 && phase != leading { // the entry might be another leader's, which the journal would mistake for this epoch's
			t.endEpoch(false)
		}
		if e == nil || !phase.applies() {
			return engine.Never
		}
		changes, err := t.applyEntry(e)
		if errors.Is(err, journal.ErrNotExecuted) || errors.Is(err, errUnreadable) {
			t.m.fail(fmt.Errorf("cluster: entry %d: %w", e.GetIndex(), err))
			return engine.Never
		}
		if err != nil {
			t.m.opt.Logger.Warn("cannot apply a committed entry to the journal; retrying", "entry", e.GetIndex(), "err", err)
			t.retryAt, t.failed = now+int64(recoverPause), err
			return t.retryAt
		}
		done += weightOf(len(e.GetData()), changes)
		t.m.mu.Lock()
		responses := t.m.queue.pop()
		t.m.mu.Unlock()
		if len(responses) > 0 {
			t.m.mail.post(func() { t.m.raft.core.Done(responses) })
		}
	}
	return now
}

// errUnreadable is wrapped by the error of an entry that this version cannot decode.
var errUnreadable = errors.New("cannot decode the entry")

// applyEntry passes the changes of an entry to the journal, and to the engine unless the
// engine made them. It returns their number. After an error of the journal, the caller
// must repeat the entry.
func (t *turn) applyEntry(e *raftpb.Entry) (n int, err error) {
	if e.GetIndex() <= t.applied.Index {
		return 0, nil // the journal has the entry, but the core needs it for the members' roles
	}
	at := journal.Applied{Index: e.GetIndex(), Term: e.GetTerm(), Stamp: t.applied.Stamp}
	var changes []engine.Change
	if e.GetType() == raftpb.EntryNormal && len(e.GetData()) > 0 {
		if at.Stamp, changes, err = t.decoder.Decode(e.GetData(), t.m.clock.zero); err != nil {
			return 0, fmt.Errorf("%w: %w", errUnreadable, err)
		}
	}
	if n := int64(len(e.GetData())); n > maxApply && t.large != at.Index {
		t.large = at.Index
		t.m.unsynced.Add(n)
	}
	if err := t.journal.AppendCommitted(changes, at); err != nil {
		return 0, err
	}
	t.applied = at
	if t.observe != nil {
		t.observe(at.Index, changes)
	}
	return len(changes), nil
}
