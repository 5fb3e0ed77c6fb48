package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// A workload consists of sessions with random operations, during kicks and closings in
// slices.
type workload struct {
	e          *Engine
	rng        *rand.Rand
	now        int64
	there      map[uint64]bool // jobs that were put and not yet deleted
	idle       []*Session      // sessions that neither wait nor kick
	kickers    []*Session
	kicks      []Sweep // kicks of the kickers
	unfinished int     // number of kicks and closings that needed more than one turn
}

// A member is the Waiter of a session. It becomes idle when its wait ends.
type member struct {
	c *workload
	s *Session
}

func (m *member) WaitOver(Job, Outcome) { m.c.idle = append(m.c.idle, m.s) }

func (c *workload) open() {
	m := &member{c: c}
	m.s = c.e.Open(m)
	c.idle = append(c.idle, m.s)
}

// TestSlicesRandom runs random operations between slices. After each step the invariants
// hold, and at the end no job is lost.
func TestSlicesRandom(t *testing.T) {
	c := workload{e: New(Options{}), rng: seeded(t), there: map[uint64]bool{}}
	c.e.slice, c.e.workLimit = 3, 40
	for range seeds.Rounds(t, 1500) {
		if len(c.idle) < 4 {
			c.open()
		}
		c.step()
		c.goOn()
		if err := c.e.Check(); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range c.e.sessions {
		if s != nil && !s.closed {
			c.e.Close(c.now, s)
		}
	}
	for c.e.Next() <= c.now {
		c.e.Tick(c.now)
	}
	if err := c.e.Check(); err != nil {
		t.Error(err)
	}
	if st := c.e.Stats(); st.Sessions != 0 || st.Reserved != 0 || st.Ready+st.Delayed+st.Buried != uint64(len(c.there)) {
		t.Errorf("%d jobs exist, stats are %+v", len(c.there), st)
	}
	if c.unfinished < 20 {
		t.Errorf("only %d kicks and closings were unfinished", c.unfinished)
	}
}

// step lets a session perform a random operation.
func (c *workload) step() {
	e, rng, now := c.e, c.rng, c.now
	k := rng.IntN(len(c.idle))
	s, name := c.idle[k], fmt.Appendf(nil, "t%d", rng.IntN(6))
	id := uint64(rng.IntN(int(e.LastID()) + 1))
	switch rng.IntN(16) {
	case 0, 1, 2:
		e.Use(s, name)
		id, _ := e.Put(now, s, Spec{Delay: rng.Uint32N(3), TTR: 1 + rng.Uint32N(9)}, nil)
		c.there[id] = true
	case 3:
		e.Watch(s, name)
	case 4, 5, 6, 7:
		e.ReserveJob(now, s, id)
	case 8:
		e.Bury(s, id, 0)
	case 9:
		if e.Delete(s, id) == OK {
			delete(c.there, id)
		}
	case 10:
		e.Close(now, s)
		c.idle = slices.Delete(c.idle, k, k+1)
	case 11:
		c.kickers = append(c.kickers, s)
		c.kicks = append(c.kicks, e.BeginKick(s, 1<<32-1))
		c.idle = slices.Delete(c.idle, k, k+1)
	case 12:
		e.Ignore(s, name)
	case 13, 14:
		c.idle = slices.Delete(c.idle, k, k+1)
		if _, o := e.Reserve(now, s, rng.Int64N(9)); o != Waiting {
			c.idle = append(c.idle, s)
		}
	case 15:
		e.Pause(now, name, rng.Uint32N(4))
	}
}

// goOn continues the first kick, whose session can be closed, and advances the time.
func (c *workload) goOn() {
	if len(c.kicks) > 0 {
		s, done := c.kickers[0], false
		if more := c.e.ContinueSweep(c.now, &c.kicks[0]); !more {
			c.idle, done = append(c.idle, s), true
		} else if c.unfinished++; c.rng.IntN(20) == 0 {
			c.e.Close(c.now, s)
			done = true
		}
		if done {
			c.kickers, c.kicks = c.kickers[1:], c.kicks[1:]
		}
	}
	c.unfinished += len(c.e.closedSessions())
	if c.rng.IntN(3) == 0 {
		c.now += c.rng.Int64N(second)
		c.e.Tick(c.now)
	}
}
