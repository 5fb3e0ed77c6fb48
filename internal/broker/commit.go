package broker

import (
	"cmp"
	"fmt"
	"sync"
)

// A commit tracks the durability of turns. Each turn that has flushed changes has a
// position, counted from 1. A turn that has flushed nothing has the position of the last
// turn that has, because it can have seen that turn's changes.
//
//	0       settled         wanted         flushed
//	|----------|---------------|---------------|
//	| durable  | a sync is     | waits for     |
//	| or failed|  under way    |   StartSync   |
//
// B1. settled <= wanted <= flushed, and none of them ever decreases. B2. If settled <
// wanted, exactly one goroutine has the lead: it syncs, or will sync next. Otherwise no
// goroutine syncs. B3. waiting is in the order of positions. All positions in it are
// larger than settled and at most flushed.
type commit struct {
	mu      sync.Mutex
	settled uint64
	wanted  uint64
	flushed uint64
	waiting []waiter
	idle    sync.Cond // signaled when no goroutine has the lead
	closed  bool

	settling   []waiter // scratch of the goroutine with the lead
	goroutines sync.WaitGroup
}

// A waiter waits until its turn is settled.
type waiter struct {
	position uint64
	settler  Settler
	err      error // error of a turn that has already failed and waits only to keep the order
}

// addTurn assigns the running turn its position and reports whether it is already
// settled. If not, its callers and Settlers wait. Both happen under one lock, because
// otherwise a sync could end in between, and the waiters would miss it.
func (c *commit) addTurn(durable bool, callers []*Caller, leader *Caller, settlers []Settler, err error) (settled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.flushed
	if !durable || err != nil {
		c.flushed++
	}
	if err != nil && c.settled == before { // the turn failed, and no earlier turn is unsettled
		c.settled, c.wanted = c.flushed, c.flushed
	}
	if c.settled == c.flushed {
		return true
	}
	for _, s := range settlers {
		c.waiting = append(c.waiting, waiter{c.flushed, s, err})
	}
	for _, k := range callers {
		if k.settler != nil {
			c.waiting = append(c.waiting, waiter{c.flushed, k.settler, err})
		}
		k.returns(leader, false, nil)
	}
	return false
}

// returns makes a caller return from Start. The leader returns from the turn itself.
func (k *Caller) returns(leader *Caller, settled bool, err error) {
	k.settler, k.settled, k.err = nil, settled, err
	if k != leader {
		k.next <- false
	}
}

// requestSync requests a sync of all flushed changes. It returns true if the caller must
// sync, because no goroutine had the lead.
func (c *commit) requestSync() (lead bool) {
	lead = c.settled == c.wanted && c.wanted < c.flushed
	c.wanted = c.flushed
	return lead
}

// StartSync makes sure, without waiting, that all earlier turns will be settled. If no
// sync is running, a goroutine starts one at once; otherwise another sync follows it.
//
// One sync serves all waiters, so an event loop should serve all ready sockets first and
// call StartSync before it waits for more.
func (b *Broker) StartSync() {
	c := &b.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requestSync() {
		c.goroutines.Go(b.syncAll)
	}
}

// Sync is StartSync for a caller that has nothing else to do. If no sync is running, it
// syncs in the goroutine of the caller, which saves two switches.
func (b *Broker) Sync() {
	c := &b.commit
	c.mu.Lock()
	lead := c.requestSync()
	c.mu.Unlock()
	if lead {
		b.sync()
	}
}

// sync syncs once and passes the lead on to a goroutine.
func (b *Broker) sync() {
	c := &b.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.syncLocked() {
		c.goroutines.Go(b.syncAll)
	}
}

// syncAll syncs until no sync is wanted.
func (b *Broker) syncAll() {
	b.commit.mu.Lock()
	defer b.commit.mu.Unlock()
	for b.syncLocked() {
	}
}

// syncLocked syncs all flushed changes and settles their turns. It returns true if
// another sync is wanted by then. If not, it gives up the lead.
func (b *Broker) syncLocked() (more bool) {
	c := &b.commit
	position := c.flushed
	c.wanted = position
	c.mu.Unlock()
	engines := b.engines.Load()
	err := b.log.Sync()
	c.mu.Lock()
	b.noteDeposed(err, engines)
	// Another turn can have received this position during the sync. Notify its Settlers
	// before a later turn finds that all turns are settled.
	for c.collect(position) {
		c.mu.Unlock()
		for i := range c.settling {
			w := &c.settling[i]
			w.settler.Settled(cmp.Or(w.err, err))
			*w = waiter{}
		}
		c.mu.Lock()
	}
	c.settled = position
	if err != nil && !c.closed {
		c.goroutines.Go(b.tick) // a turn in which the log can start to heal
	}
	if c.wanted > c.settled {
		return true
	}
	c.idle.Broadcast()
	return false
}

// collect moves the waiters for a position up to the given one to settling.
func (c *commit) collect(position uint64) (any bool) {
	n := 0
	for n < len(c.waiting) && c.waiting[n].position <= position {
		n++
	}
	c.settling = append(c.settling[:0], c.waiting[:n]...)
	left := copy(c.waiting, c.waiting[n:])
	clear(c.waiting[left:])
	c.waiting = c.waiting[:left]
	return n > 0
}

// close waits, within the turn that closes the log, until no goroutine has the
// lead. It returns true if the caller must sync.
func (c *commit) close() (lead bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for c.settled < c.wanted {
		c.idle.Wait()
	}
	return c.requestSync()
}

// Check tests the invariants B1 to B3.
func (b *Broker) Check() error {
	c := &b.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled > c.wanted || c.wanted > c.flushed {
		return fmt.Errorf("broker: settled %d, wanted %d, flushed %d are not in order", c.settled, c.wanted, c.flushed)
	}
	last := c.settled + 1
	for _, w := range c.waiting {
		if w.position < last || w.position > c.flushed {
			return fmt.Errorf("broker: a waiter for position %d comes after one for %d; flushed is %d", w.position, last, c.flushed)
		}
		last = w.position
	}
	return nil
}
