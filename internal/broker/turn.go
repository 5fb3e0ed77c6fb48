package broker

import (
	"errors"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// turn runs one turn, led by c, whose request is in the queue.
func (b *Broker) turn(c *Caller) {
	b.mu.Lock()
	callers := b.mu.queue
	b.mu.queue = b.emptyQueue[:0]
	b.mu.Unlock()
	w := stopwatch{began: b.now(), requests: len(callers)}
	begin := max(w.began, b.last+1)
	now, refused := b.execute(callers, begin)
	if b.decides() { // later commands can have other times
		b.last = now
	}
	w.executed = b.lap()
	durable, err := b.flush()
	if refused && err == nil {
		err = ErrDeposed
	}
	b.conclude(callers, c, durable, err)
	w.flushed = b.lap()
	b.housekeep(now)
	b.measureTurn(&w, now-begin)
	b.passLead()
}

// execute fires due timers and applies the requests. If the broker is deposed, it applies
// only the broker's own requests. It returns the time after them, and whether a request
// was refused.
func (b *Broker) execute(callers []*Caller, now int64) (later int64, refused bool) {
	deposed := b.deposed.Load()
	if !b.closed && !deposed && b.decides() {
		b.eng.Tick(now)
		if b.eng.SchedulesDue(now) {
			b.eng.RunSchedules(now, b.wall())
		}
	}
	for _, c := range callers {
		if (deposed || !b.decides()) && !permits(c.req, deposed) {
			refused = true
			continue
		}
		now = c.req.Apply(b.eng, now) + 1
	}
	return now, refused
}

// permits reports whether a request is applied even if the engine cannot make changes.
func permits(r Request, deposed bool) bool {
	switch r.(type) {
	case internal:
		return true
	case view:
		return !deposed
	}
	return false
}

// flush passes the changes of this turn to the log.
func (b *Broker) flush() (durable bool, err error) {
	if b.log == nil {
		return true, nil
	}
	defer func() { b.noteDeposed(err, b.engines.Load()) }()
	changes := b.eng.TakeChanges()
	defer b.eng.RecycleChanges(changes)
	switch {
	case b.logClosed && len(changes) > 0:
		return false, ErrClosed
	case b.logClosed:
		return true, nil
	case b.deposed.Load() && len(changes) == 0:
		return false, ErrDeposed
	case len(changes) > 0:
		if err := b.log.Append(changes); err != nil {
			return false, err
		}
	}
	return b.log.Flush()
}

// noteDeposed records that the log was deposed, unless its error concerns an earlier
// engine. The caller must run the turn or hold commit.mu, so that the engine is not
// replaced concurrently.
func (b *Broker) noteDeposed(err error, engines uint64) {
	if err != nil && errors.Is(err, ErrDeposed) && engines == b.engines.Load() {
		b.deposed.Store(true)
	}
}

// conclude notifies the callers and Settlers of this turn that it is settled, or makes
// them wait for a sync.
func (b *Broker) conclude(callers []*Caller, leader *Caller, durable bool, err error) {
	if b.log == nil || b.commit.addTurn(durable, callers, leader, b.settlers, err) {
		for _, s := range b.settlers {
			s.Settled(err)
		}
		for _, c := range callers {
			c.returns(leader, true, err)
		}
	}
	clear(callers)
	b.emptyQueue = callers
	clear(b.settlers)
	b.settlers = b.settlers[:0]
}

// housekeep lets the log do its own work and sets the timer for the next event.
func (b *Broker) housekeep(now int64) {
	next := int64(engine.Never)
	if !b.deposed.Load() && b.decides() {
		if next = b.eng.Next(); next <= now {
			next = b.deferDue(now)
		}
	}
	if b.log != nil && !b.logClosed {
		next = min(next, b.log.Housekeep(now))
	}
	b.schedule(next)
}

// deferDue notifies the event loop of due timers that did not fit in this turn, and
// returns the time at which the broker itself fires them.
func (b *Broker) deferDue(now int64) int64 {
	tell := b.moreDue.Load()
	if tell == nil || b.closed {
		return now
	}
	(*tell)()
	return now + int64(moreDuePatience)
}

// moreDuePatience is the time for which the timer waits until the function passed to
// OnMoreDue causes a turn.
const moreDuePatience = 5 * time.Millisecond

// passLead passes the lead to the first waiting caller, if any.
func (b *Broker) passLead() {
	b.mu.Lock()
	var next *Caller
	if len(b.mu.queue) > 0 {
		next = b.mu.queue[0]
	} else {
		b.mu.led = false
	}
	b.mu.Unlock()
	if next != nil {
		next.next <- true
	}
}

// schedule sets the timer to next, unless it fires earlier.
func (b *Broker) schedule(next int64) {
	if next >= b.timerAt || b.closed {
		return
	}
	b.timerAt = next
	b.timer.Reset(time.Duration(max(0, next-b.now()))) // the turn itself has taken some time
}

// tick runs a turn for due timers, or after a failure of the log. The timer calls it in
// its own goroutine.
func (b *Broker) tick() {
	b.callInternal(func() { b.timerAt = engine.Never })
}
