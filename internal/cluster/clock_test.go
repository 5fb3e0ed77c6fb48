package cluster

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/cluster/entry"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// offset returns the difference between a member's clock and the true time.
func (m *Member) offset() time.Duration { return time.Duration(m.clock.time() - time.Now().UnixNano()) }

// After all members restart, the cluster keeps its time even if the new leader's clock is
// far off. A fast clock would end delays too early; a slow clock would not count the time
// in which no member was running.
func TestClockFarOff(t *testing.T) {
	for name, off := range map[string]time.Duration{"days ahead": 48 * time.Hour, "minutes ahead": 10 * time.Minute, "days behind": -48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			inSimulation(t, 3, func(t *testing.T, sim *simulation) {
				sim.nodes[1].off = off
				led := 0
				for n := 0; n < 3 || led == 0 && n < 100; n++ { // the elected member is random
					_, err := sim.put(sim.leader(), "mail", engine.Spec{TTR: 60, Delay: 3600}, "later")
					sim.must(err)
					for _, m := range sim.nodes {
						m.kill(false)
					}
					time.Sleep(3 * time.Hour)
					for _, m := range sim.nodes {
						m.boot()
					}
					l := sim.leader()
					if sim.nodeOf(l) == sim.nodes[1] {
						led++
					}
					if d := l.offset(); d.Abs() > time.Second {
						sim.fatalf("the cluster's time is off by %v", d)
					}
				}
				if led == 0 {
					t.Error("the member whose clock is off was never elected first")
				}
			})
		})
	}
}

// A leader uses the median of the available clocks, or the earlier of two medians, if
// these clocks belong to a majority.
func TestClockOfMajority(t *testing.T) {
	inSimulation(t, 5, func(t *testing.T, sim *simulation) {
		l := sim.leader()
		const h, m = time.Hour, time.Minute
		for _, c := range []struct {
			ahead []time.Duration // how far the other members' clocks are ahead
			known bool
			want  time.Duration // how far the majority's time is ahead of this member's
		}{
			{[]time.Duration{-h, h}, true, 0},
			{[]time.Duration{m, h}, true, m},
			{[]time.Duration{-h, -m}, true, -m},
			{[]time.Duration{0, -h}, true, 0},
			{[]time.Duration{-h, m, h}, true, 0},
			{[]time.Duration{h}, false, 0},
		} {
			var got int64
			known := false
			l.inLoop(func() {
				ahead := c.ahead
				for id, p := range l.raft.peers {
					p.handshake.Time = 0
					if id != l.opt.Self.ID && len(ahead) > 0 {
						p.handshake.Time, p.clockOffset, ahead = 1, l.clock.offset.Load()+int64(ahead[0]), ahead[1:]
					}
				}
				got, known = l.raft.majorityTime()
			})
			if d := time.Duration(got - l.clock.time()); known != c.known || d != c.want {
				t.Errorf("%v: %v ahead, known: %v", c.ahead, d, known)
			}
		}
	})
}

// A leader's time is later than the time of every entry, even if the clocks of the
// remaining members are slow. So no job becomes younger, and no delay restarts.
func TestTimeOfEntries(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		l := sim.leader()
		at := l.clock.time()
		sim.mustPut(l, 1, "a")
		time.Sleep(time.Second)
		sim.nodeOf(l).kill(false)
		for _, m := range sim.nodes {
			if m != sim.nodeOf(l) {
				m.member.clock.offset.Add(-int64(time.Hour))
			}
		}
		if now := sim.leader().clock.time(); now <= at {
			t.Errorf("the cluster's time has gone back by %v", time.Duration(at-now))
		}
	})
}

// If a member whose clock is somewhat ahead starts and soon becomes the leader, no delay
// ends too early, because the member adopts the cluster's time at once.
func TestClockOfFreshMember(t *testing.T) {
	inSimulation(t, 3, func(t *testing.T, sim *simulation) {
		l := sim.leader()
		m := sim.nodes[sim.nodeOf(l).id%3]
		m.kill(false)
		m.off = 3 * time.Second
		m.boot()
		time.Sleep(time.Second)
		before := l.offset()
		sim.must(l.Transfer(t.Context(), m.id))
		sim.until("it leads", func() bool { return sim.whoLeads() == m.member })
		if jump := m.member.offset() - before; jump.Abs() > 20*time.Millisecond {
			t.Errorf("the cluster's time has jumped by %v", jump)
		}
	})
}

// Members of different versions work together if both support the level of the entries.
func TestLevels(t *testing.T) {
	inSimulation(t, 2, func(t *testing.T, sim *simulation) {
		l := sim.leader()
		other := sim.nodes[sim.nodeOf(l).id%2]
		for level, want := range map[uint64]error{entry.Written - 1: ErrTooOld, entry.Written: nil, entry.Level + 1: nil} {
			h := other.member.Handshake()
			h.Level = level
			if err := l.AcceptHandshake(other.id, h); !errors.Is(err, want) {
				t.Errorf("level %d: %v", level, err)
			}
		}
	})
}

// Late messages from a leader, even if many arrive at once, delay a member's clock by
// less than their lateness, and messages that are on time correct it.
func TestClockOfLateMessages(t *testing.T) {
	now := int64(time.Hour)
	c := clock{now: func() int64 { return now }}
	const tick = int64(60 * time.Millisecond)
	c.hear(now+tick, 0) // a clock that is behind is wrong
	if c.time() != now+tick {
		t.Fatalf("the time is off by %v", time.Duration(c.time()-now-tick))
	}
	lateness := 2 * int64(time.Second)
	now += lateness
	for late := lateness; late > 0; late -= tick { // all messages in transit arrive at once
		c.hear(now+tick-late, latest)
	}
	if off := time.Duration(now + tick - c.time()); off < 0 || off > 100*time.Millisecond {
		t.Errorf("after late messages the time is behind by %v", off)
	}
	now += tick
	if c.hear(now+tick, math.MaxInt64); c.time() != now+tick {
		t.Errorf("after a timely message, the time is off by %v", time.Duration(c.time()-now-tick))
	}
	now += tick
	if c.hear(now-int64(time.Hour), latest); c.time() != now-int64(time.Hour) {
		t.Errorf("a clock that is an hour ahead is not corrected: %v", time.Duration(now-c.time()))
	}
}
