package broker

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
)

// A commit is how far the turns have become durable. Each turn that has flushed
// something has a position: they are counted from 1. A turn that has not has
// that of the last one that did, for it may have seen what that changed.
//
//	0       settled         wanted         flushed
//	|----------|---------------|---------------|
//	| durable  | someone syncs | waits for     |
//	| or failed|  or will      |   StartSync   |
//
// B1. settled <= wanted <= flushed, and none of them ever gets smaller.
// B2. If settled < wanted, exactly one goroutine has the lead: it syncs, or has
// been told to. Otherwise nobody syncs, and no caller of Do waits.
// B3. waiting is in the order of positions. All of them are after settled and not
// after flushed.
type commit struct {
	mu      sync.Mutex
	settled uint64
	wanted  uint64
	flushed uint64
	waiting []waiter
	idle    sync.Cond // nobody has the lead any more
	closed  bool

	told       []waiter // scratch of whoever has the lead
	goroutines sync.WaitGroup
}

// A waiter is to be told when its turn is settled.
type waiter struct {
	position uint64
	settler  Settler
	caller   *Caller // if it waits in Do
	err      error   // the turn has failed already; only the order is waited for
}

// blocked tells a caller in Do that its turn is settled.
type blocked Caller

func (c *blocked) Settled(err error) {
	c.err = err
	c.next <- over
}

// add gives the running turn its position, and reports whether it is settled
// already.
func (c *commit) add(durable bool, err error) (settled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.flushed
	if !durable || err != nil {
		c.flushed++
	}
	if err != nil && c.settled == before { // no sync will change that
		c.settled, c.wanted = c.flushed, c.flushed
	}
	return c.settled == c.flushed
}

// enlist makes everybody wait whom the running turn concerns. Callers of Start
// go on. If one of Do waits and nobody has the lead, it gets that, the leader of
// the turn rather than another. It returns what that leader does next.
func (c *commit) enlist(callers []*Caller, leader *Caller, settlers []Settler, err error) (next step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range settlers {
		c.waiting = append(c.waiting, waiter{c.flushed, s, nil, err})
	}
	var syncs *Caller
	for _, k := range callers {
		if k.settler == nil {
			c.waiting = append(c.waiting, waiter{c.flushed, (*blocked)(k), k, err})
			if syncs == nil || k == leader {
				syncs = k
			}
			continue
		}
		c.waiting = append(c.waiting, waiter{c.flushed, k.settler, nil, err})
		k.settler, k.settled, k.err = nil, false, nil
		if k == leader {
			next = over
		} else {
			k.next <- over
		}
	}
	if syncs != nil && c.want() {
		if syncs == leader {
			return leadSync
		}
		syncs.next <- leadSync
	}
	return next
}

// want makes somebody sync what is flushed, if there is anything. It returns
// true if that is the caller: nobody had the lead.
func (c *commit) want() (lead bool) {
	lead = c.settled == c.wanted && c.wanted < c.flushed
	c.wanted = c.flushed
	return lead
}

// StartSync makes sure that all turns until now will be settled, and does not
// wait for that. If no sync is under way a goroutine begins one at once;
// otherwise another follows it.
//
// A sync is for all who wait, so an event loop should serve what is ready first,
// and call StartSync before it waits for more.
func (b *Broker) StartSync() {
	c := &b.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.want() {
		c.goroutines.Go(b.syncAll)
	}
}

// Sync is StartSync for a caller that has nothing else to do: if no sync is
// under way it syncs in the goroutine of the caller, which saves two switches.
func (b *Broker) Sync() {
	c := &b.commit
	c.mu.Lock()
	lead := c.want()
	c.mu.Unlock()
	if lead {
		b.sync()
	}
}

// sync syncs once and passes the lead on: to a caller that waits in Do, or to a
// goroutine.
func (b *Broker) sync() {
	c := &b.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	if !b.syncLocked() {
		return
	}
	for _, w := range c.waiting {
		if w.caller != nil {
			w.caller.next <- leadSync
			return
		}
	}
	c.goroutines.Go(b.syncAll)
}

// syncAll syncs until no more is wanted.
func (b *Broker) syncAll() {
	b.commit.mu.Lock()
	defer b.commit.mu.Unlock()
	for b.syncLocked() {
	}
}

// syncLocked syncs all that is flushed and settles it. It returns true if more
// is wanted by then, and gives back the lead if not.
func (b *Broker) syncLocked() (more bool) {
	c := &b.commit
	position := c.flushed
	c.wanted = position
	c.mu.Unlock()
	err := b.log.Sync()
	c.mu.Lock()
	// A turn may have come to this position meanwhile. Those who hear of it
	// must have heard before another turn finds that all is settled.
	for c.take(position) {
		c.mu.Unlock()
		for i := range c.told {
			w := &c.told[i]
			w.settler.Settled(cmp.Or(w.err, err))
			*w = waiter{}
		}
		c.mu.Lock()
	}
	c.settled = position
	if err != nil && !c.closed {
		c.goroutines.Go(b.tick) // the log has something to do
	}
	if c.wanted > c.settled {
		return true
	}
	c.idle.Broadcast()
	return false
}

// take moves those who wait for a position, or one before, to told.
func (c *commit) take(position uint64) (any bool) {
	n := 0
	for n < len(c.waiting) && c.waiting[n].position <= position {
		n++
	}
	c.told = append(c.told[:0], c.waiting[:n]...)
	left := copy(c.waiting, c.waiting[n:])
	clear(c.waiting[left:])
	c.waiting = c.waiting[:left]
	return n > 0
}

// close waits, within the turn that closes the log, until nobody has the lead.
// It returns true if the caller must sync.
func (c *commit) close() (lead bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for c.settled < c.wanted {
		c.idle.Wait()
	}
	return c.want()
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
			return fmt.Errorf("broker: one waits for %d behind one who waits for %d; flushed is %d", w.position, last, c.flushed)
		}
		last = w.position
		if w.caller != nil && c.settled == c.wanted {
			return errors.New("broker: a caller waits for a sync that nobody leads")
		}
	}
	return nil
}
