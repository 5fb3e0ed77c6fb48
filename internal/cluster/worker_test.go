package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A verb is a client's request, which only a leader's engine executes.
type verb func(e *engine.Engine, now int64)

// Apply implements broker.Request.
func (v verb) Apply(e *engine.Engine, now int64) int64 {
	v(e, now)
	return now
}

// A worker is a client with a session on the current leader. When the epoch of its
// session ends, it starts another session.
type worker struct {
	sim     *simulation
	rng     *rand.Rand
	member  *Member
	epoch   uint64
	term    uint64
	session *engine.Session
	waits   bool // owned by the turn
}

// WaitOver implements engine.Waiter.
func (k *worker) WaitOver(engine.Job, engine.Outcome) { k.waits = false }

// errEpoch means that the epoch of a session has ended.
var errEpoch = errors.New("the session's epoch is over")

// do executes a verb of the session.
func (k *worker) do(f verb) error {
	err, began := errEpoch, time.Since(k.sim.start)
	if failed := k.member.Broker().NewCaller(verb(func(e *engine.Engine, now int64) {
		if k.member.turn.epoch == k.epoch { // a deposed leader disconnects its clients before another epoch starts
			err = nil
			f(e, now)
		}
	})).Do(); failed != nil {
		err = failed
	}
	if errors.Is(err, errEpoch) || errors.Is(err, broker.ErrDeposed) {
		k.session = nil
	}
	if err == nil {
		k.sim.mu.Lock()
		defer k.sim.mu.Unlock()
		k.sim.answered(k.term, began, time.Since(k.sim.start))
	}
	return err
}

// begin starts a session on the current leader. It returns false if there is no leader.
func (k *worker) begin() bool {
	if k.member = k.sim.whoLeads(); k.member == nil {
		return false
	}
	lead := k.member.Lead()
	k.epoch, k.term = lead.Epoch, lead.Term
	return k.do(func(e *engine.Engine, _ int64) {
		k.session, k.waits = e.Open(k), false
		for n := range 3 {
			e.Watch(k.session, fmt.Appendf(nil, "tube%d", n))
		}
	}) == nil
}

// run works until done is closed.
func (k *worker) run(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Duration(1+k.rng.IntN(20)) * time.Millisecond):
		}
		if k.session != nil || k.begin() {
			k.step()
		}
	}
}

// step executes a command on a reserved job, or on another job.
func (k *worker) step() {
	var tried, shown, once string
	var id uint64
	sent := k.sim.asked.Now()
	what, tube := k.rng.IntN(10), fmt.Appendf(nil, "tube%d", k.rng.IntN(4))
	pri, delay := uint32(k.rng.IntN(3)), uint32(k.rng.IntN(3))
	err := k.do(func(e *engine.Engine, now int64) {
		s := k.session
		if k.waits {
			return
		}
		id = 0
		if held := e.Holds(now, s, 1); len(held) > 0 {
			id = held[0].ID
		}
		switch what {
		case 0, 1, 2:
			j, o := e.Reserve(now, s, int64(pri))
			if k.waits = o == engine.Waiting; o == engine.OK {
				id, shown = j.ID, keyOf(j.Body)
				once = reservation(e, j.ID)
			}
		case 3:
			e.Release(now, s, id, pri, delay)
		case 4:
			e.Bury(s, id, pri)
		case 5:
			e.Kick(now, s, 3)
		case 6:
			if pri == 0 {
				e.SetPolicy(string(tube)+"*", []string{"", "burst=2\n", "paused=no\n"}[delay])
			}
			e.Pause(now, tube, delay)
		case 7:
			e.Use(s, tube)
			e.Touch(now, s, id)
		case 8:
			if c, ok := e.Snapshot(1 + e.LastID()/2); ok && c.Tube != laterTube {
				e.ReserveJob(now, s, c.ID)
			}
		case 9:
			if c, ok := e.Snapshot(id); ok && e.Delete(s, id) == engine.OK {
				tried = keyOf(c.Body)
				k.sim.asked.Delete(tried)
			}
		}
	})
	if err == nil && tried != "" {
		k.sim.asked.Deleted(tried)
	}
	if err == nil && once != "" {
		if _, twice := k.sim.once.LoadOrStore(once, true); twice {
			k.sim.t.Errorf("a worker got the same %s twice: the first was lost", once)
		}
	}
	if err == nil && shown != "" {
		k.sim.asked.Shown(shown, id, sent)
	}
}

// reservation identifies the reservation of a job with a single attempt, or more after
// kicks; it is empty for other jobs.
func reservation(e *engine.Engine, id uint64) string {
	c, _ := e.Snapshot(id)
	if p := e.PolicyOf(c.Tube); p == nil || p.MaxAttempts != 1 {
		return ""
	}
	return fmt.Sprintf("reservation %d of job %d", c.Reserves, c.ID)
}

// somePolicies returns policies for a life in which some tubes have policies.
func somePolicies(tube string) *engine.Policy {
	return map[string]*engine.Policy{
		"tube1": {MaxAttempts: 1, MaxReserved: 5},
		"tube2": {MaxAttempts: 3, RetryDelay: int64(time.Second), RetryMax: int64(time.Minute), RetryFactor: 2, RetryOn: engine.Lost | engine.Release, TTL: int64(3 * time.Second), BuryAtTTL: true},
	}[tube]
}
