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
	if b.decides() { // what follows may have been told another time meanwhile
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

// execute does what has come due and applies the requests, while the broker is deposed only
// its own. It returns the time after them, and whether a request was refused.
func (b *Broker) execute(callers []*Caller, now int64) (later int64, refused bool) {
	deposed := b.deposed.Load()
	if !b.closed && !deposed && b.decides() {
		b.eng.Tick(now)
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

// permits reports whether a request is applied though the engine does not decide.
func permits(r Request, deposed bool) bool {
	switch r.(type) {
	case own:
		return true
	case call:
		return !deposed
	}
	return false
}

// flush hands the changes of this turn to the log.
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

// noteDeposed notes that the log has said so, unless that was about an engine before the
// present one. The caller runs the turn or holds commit.mu, so that no engine is replaced
// meanwhile.
func (b *Broker) noteDeposed(err error, engines uint64) {
	if err != nil && errors.Is(err, ErrDeposed) && engines == b.engines.Load() {
		b.deposed.Store(true)
	}
}

// conclude tells the callers and Settlers of this turn that it is settled, or makes them
// wait for a sync.
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

// housekeep lets the log do its own work, and sets the timer for what comes due
// next.
func (b *Broker) housekeep(now int64) {
	next := int64(engine.Never)
	if !b.deposed.Load() && b.decides() {
		if next = b.eng.Next(); next <= now {
			next = b.leaveDue(now)
		}
	}
	if b.log != nil && !b.logClosed {
		next = min(next, b.log.Housekeep(now))
	}
	b.schedule(next)
}

// leaveDue says that more has come due than the turn could bear, and returns when the
// timer has to see to it.
func (b *Broker) leaveDue(now int64) int64 {
	tell := b.moreDue.Load()
	if tell == nil || b.closed {
		return now
	}
	(*tell)()
	return now + int64(moreDuePatience)
}

// moreDuePatience is how long the timer waits for whoever was told that more is due.
const moreDuePatience = 5 * time.Millisecond

// passLead gives the lead to the first caller that has queued up meanwhile, if
// there is one.
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

// schedule sets the timer, unless it goes off before next anyway.
func (b *Broker) schedule(next int64) {
	if next >= b.timerAt || b.closed {
		return
	}
	b.timerAt = next
	b.timer.Reset(time.Duration(max(0, next-b.now()))) // the turn took its time
}

// tick is a turn for what has come due, or because the log has failed. The timer
// calls it in a goroutine of its own.
func (b *Broker) tick() {
	b.callOwn(func() { b.timerAt = engine.Never })
}
