package broker

import (
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// turn runs one turn, led by c, whose request is in the queue.
func (b *Broker) turn(c *Caller) {
	callers := b.gather()
	now := max(b.now(), b.last+1)
	if !b.closed {
		b.eng.Tick(now)
	}
	for _, c := range callers {
		now = c.req.Apply(b.eng, now) + 1
	}
	b.last = now
	if err := b.commit(); err != nil {
		for _, c := range callers {
			c.req.Failed(err)
		}
	}
	b.release(callers, c)
	b.prepare(now)
	b.pass()
}

// gather takes the queue.
func (b *Broker) gather() []*Caller {
	b.mu.Lock()
	defer b.mu.Unlock()
	callers := b.mu.queue
	b.mu.queue = b.spare[:0]
	return callers
}

// commit makes the changes of this turn durable.
func (b *Broker) commit() error {
	if b.log == nil {
		return nil
	}
	changes := b.eng.Take()
	defer b.eng.Recycle(changes)
	if len(changes) > 0 {
		if err := b.log.Append(changes); err != nil {
			return err
		}
	}
	return b.log.Commit()
}

// release lets everybody know whom this turn has concerned.
func (b *Broker) release(callers []*Caller, leader *Caller) {
	for i, w := range b.woken {
		w.Wake()
		b.woken[i] = nil
	}
	b.woken = b.woken[:0]
	for i, c := range callers {
		if c != leader {
			c.lead <- false
		}
		callers[i] = nil
	}
	b.spare = callers
}

// prepare lets the log do its own work and sets the timer for what comes due
// next.
func (b *Broker) prepare(now int64) {
	next := b.eng.Next()
	if b.log != nil {
		next = min(next, b.log.Housekeep(now))
	}
	b.schedule(next)
}

// pass gives the lead to the first who has queued up meanwhile, or to nobody.
func (b *Broker) pass() {
	b.mu.Lock()
	var next *Caller
	if len(b.mu.queue) > 0 {
		next = b.mu.queue[0]
	} else {
		b.mu.led = false
	}
	b.mu.Unlock()
	if next != nil {
		next.lead <- true
	}
}

// schedule sets the timer, unless it goes off before next anyway.
func (b *Broker) schedule(next int64) {
	if next >= b.alarm || b.closed {
		return
	}
	b.alarm = next
	b.timer.Reset(time.Duration(max(0, next-b.now()))) // the commit took its time
}

// tick is a turn for what has come due; the timer calls it in a goroutine of
// its own.
func (b *Broker) tick() {
	b.Call(func(*engine.Engine, int64) { b.alarm = engine.Never })
}
