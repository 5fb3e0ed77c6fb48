package cluster

import (
	"github.com/beanpole-mq/beanpole/internal/broker"
)

// proposals contains the entries of an epoch's turns. lifecycle.mu guards it.
type proposals struct {
	epoch   uint64        // 0 if the engine cannot make changes
	last    uint64        // number of the last flushed entry
	flushed [][]byte      // the last entries, which are not proposed yet
	pending []pendingTurn // turns that are flushed and not committed, in order
	weight  int64         // total of pending
	lost    bool          // the engine has changes that might never be committed
}

// A pendingTurn is a turn that was flushed.
type pendingTurn struct {
	last   uint64 // number of its last entry in its epoch
	weight int64
}

// weightOf returns the weight of changes, which limits the work and the memory for them:
// the bytes of their entries, and 256 bytes for each change.
func weightOf(bytes, changes int) int64 { return int64(bytes) + 256*int64(changes) }

// Requests of clients wait while more than maxPending is flushed and not committed.
const maxPending = 64 << 20

// mayPropose reports whether an epoch is in force. During a transfer, it stays in force,
// so that the current turn is still proposed.
func (l *lifecycle) mayPropose(epoch uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return epoch != 0 && l.shared.lead.Epoch == epoch
}

// isLeased reports whether the lease rules out another leader.
func (l *lifecycle) isLeased() bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return now < l.shared.leased
}

// awaitRoom waits while the pending changes are too large, at most until the epoch ends.
// It runs outside turns.
func (m *Member) awaitRoom() {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &m.proposals
	for p.epoch != 0 && p.epoch == m.shared.lead.Epoch && p.weight > maxPending {
		m.propose()
		m.changed.Wait()
	}
}

// enqueue adds the entries of a turn. It returns false if the epoch has ended.
func (l *lifecycle) enqueue(epoch uint64, entries [][]byte, weight int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shared.lead.Epoch != epoch {
		return false
	}
	p := &l.proposals
	p.flushed = append(p.flushed, entries...)
	p.last += uint64(len(entries))
	p.pending = append(p.pending, pendingTurn{p.last, weight})
	p.weight += weight
	return true
}

// propose proposes the flushed entries. The caller holds mu.
func (m *Member) propose() {
	epoch, entries := m.proposals.epoch, m.proposals.flushed
	if len(entries) == 0 {
		return
	}
	m.proposals.flushed = nil
	m.mail.post(func() {
		if err := m.raft.core.Propose(epoch, entries...); err != nil {
			m.opt.Logger.Debug("the entries of a turn were refused", "epoch", epoch, "err", err)
		}
	})
}

// retire removes committed turns from pending. After the end of the epoch, the remaining
// turns might never be committed. The caller holds mu.
func (l *lifecycle) retire() {
	p := &l.proposals
	if p.epoch != l.shared.lead.Epoch {
		*p = proposals{epoch: p.epoch, last: p.last, lost: p.lost || len(p.pending) > 0}
		return
	}
	n := 0
	for n < len(p.pending) && p.pending[n].last <= l.shared.committed {
		p.weight -= p.pending[n].weight
		n++
	}
	p.pending = p.pending[n:]
}

// commit proposes all flushed entries. It waits until they are committed, and until the
// lease or an answer of a majority rules out another leader.
func (m *Member) commit() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	epoch, last := m.proposals.epoch, m.proposals.last
	if epoch == 0 {
		return nil // the turns of the last epoch have failed
	}
	m.propose()
	in := func() bool { return m.shared.lead.Epoch == epoch }
	for in() && m.shared.committed < last {
		m.changed.Wait()
	}
	if in() && m.now() >= m.shared.leased {
		question := uint64(0) // guarded by mu
		m.mail.post(func() {
			n := m.raft.core.Ask(m.opt.Now())
			m.mu.Lock()
			defer m.mu.Unlock()
			question = n
			m.changed.Broadcast()
		})
		for in() && (question == 0 || m.shared.confirmed < question) {
			m.changed.Wait()
		}
	}
	if !in() {
		return broker.ErrDeposed
	}
	return nil
}
