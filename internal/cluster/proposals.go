package cluster

import (
	"github.com/beanpole-mq/beanpole/internal/broker"
)

// proposals are what the turns of an epoch want committed. With Member.mu.
type proposals struct {
	last    uint64        // number of the last entry that was flushed
	flushed [][]byte      // entries up to that one that are not proposed
	pending []pendingTurn // what was flushed and is not committed, in order
	weight  weight        // of pending
	lost    bool          // the engine has done what may never be committed
}

// pendingTurn is what a turn has flushed.
type pendingTurn struct {
	last   uint64 // the number of its last entry in its epoch
	weight weight
}

// weight is how much something is.
type weight struct {
	bytes   int64
	changes int
}

// A turn waits as long as more than this is flushed and not committed.
const (
	maxPendingBytes   = 64 << 20
	maxPendingChanges = 200_000
)

// mayPropose reports whether an epoch is in force. What a turn has done when the
// leadership is about to go to another member is still proposed; no later turn decides
// anything.
func (l *lifecycle) mayPropose(epoch uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return epoch != 0 && l.shared.epoch == epoch
}

// isLeased reports whether nobody else can lead now.
func (l *lifecycle) isLeased() bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return now < l.shared.leased
}

// enqueue notes that entries are to be proposed. If too much is under way already it
// waits; the epoch may end meanwhile, and then it returns false.
func (l *lifecycle) enqueue(epoch uint64, entries [][]byte, w weight) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &l.proposals
	for l.shared.epoch == epoch && (p.weight.bytes > maxPendingBytes || p.weight.changes > maxPendingChanges) {
		l.propose()
		l.changed.Wait()
	}
	if l.shared.epoch != epoch {
		return false
	}
	p.flushed = append(p.flushed, entries...)
	p.last += uint64(len(entries))
	p.pending = append(p.pending, pendingTurn{p.last, w})
	p.weight.bytes += w.bytes
	p.weight.changes += w.changes
	return true
}

// propose proposes what was flushed. The caller holds mu.
func (l *lifecycle) propose() {
	epoch, entries := l.epoch, l.proposals.flushed
	if len(entries) == 0 {
		return
	}
	l.proposals.flushed = nil
	l.mail.post(proposed{epoch, entries})
}

// retire forgets what is committed of what was proposed. When the epoch has ended nobody
// knows whether the rest ever will be. The caller holds mu.
func (l *lifecycle) retire() {
	p := &l.proposals
	if l.shared.epoch != l.epoch {
		*p = proposals{last: p.last, lost: p.lost || len(p.pending) > 0}
		return
	}
	n := 0
	for n < len(p.pending) && p.pending[n].last <= l.shared.committed {
		p.weight.bytes -= p.pending[n].weight.bytes
		p.weight.changes -= p.pending[n].weight.changes
		n++
	}
	p.pending = p.pending[n:]
}

// commit proposes everything that was flushed, and waits until that is committed, and
// nobody else can lead.
func (l *lifecycle) commit() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	epoch, last := l.epoch, l.proposals.last
	if epoch == 0 {
		return nil // what is not settled has failed by itself
	}
	l.propose()
	in := func() bool { return l.shared.epoch == epoch }
	for in() && l.shared.committed < last {
		l.changed.Wait()
	}
	if in() && l.now() >= l.shared.leased {
		question := new(uint64)
		l.mail.post(asked{question})
		for in() && (*question == 0 || l.shared.confirmed < *question) {
			l.changed.Wait()
		}
	}
	if !in() {
		return broker.ErrDeposed
	}
	return nil
}
