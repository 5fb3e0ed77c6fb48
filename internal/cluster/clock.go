package cluster

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// clock is the cluster's time, in nanoseconds since 1970. It is that of the leader, which
// entries and heartbeats carry. The next leader goes on from there, so delays keep their
// lengths when the clocks of the machines differ.
type clock struct {
	now    func() int64 // Options.Now
	zero   int64        // the cluster's time at which the engine's clock was 0
	offset atomic.Int64 // the cluster's time is now() plus this
	heard  int64        // when the leader's time was heard last, on now; of the raft loop
}

func (c *clock) time() int64 { return c.now() + c.offset.Load() }

// engine is the engine's clock, for [broker.Options].
func (c *clock) engine() int64 { return max(c.time()-c.zero, 0) }

// hear sets the clock by the leader's time in a message, in the raft loop. The time is old
// if the message took long. So the clock goes forward at once. It goes back by a sixteenth of
// the time that passes, or at once if it is ahead by more than a message can be late.
func (c *clock) hear(said int64, mayBeLate int64) {
	now := c.now()
	slower := min(now-c.heard, int64(time.Second)) / 16
	c.heard = now
	c.change(func(before int64) int64 {
		if behind := before - (said - now); behind > 0 && behind <= mayBeLate {
			return before - min(behind, slower)
		}
		return said - now
	})
}

// change changes the offset from its present value. Turns and the raft loop both do.
func (c *clock) change(to func(before int64) int64) {
	for {
		before := c.offset.Load()
		if c.offset.CompareAndSwap(before, to(before)) {
			return
		}
	}
}

// mayBeLate returns how old the time in a message of a leader can be, in nanoseconds, for
// clock.hear.
func (r *raftLoop) mayBeLate(leader uint64) int64 {
	switch r.clockSource {
	case 0: // the clock is only that of the machine
		return 0
	case leader:
		return math.MaxInt64
	}
	return latest // a clock that is further ahead is wrong
}

// latest is how late a message can come, in nanoseconds: package transport closes a
// connection that is silent for longer.
const latest = 5 * int64(time.Second)

// notBefore makes the clock show at least a time.
func (c *clock) notBefore(time int64) {
	now := c.now()
	c.change(func(before int64) int64 { return max(before, time-now) })
}

// farOff is how much the clock of a machine may differ from those of the majority before
// that is worth a warning.
const farOff = time.Hour

// agreeOnTime sets the clock of a leader that no other leader has told the time by the
// clocks of the majority. Its own machine's clock may be a day ahead, which would end all
// delays.
func (r *raftLoop) agreeOnTime() {
	r.clockSource = r.m.opt.Self.ID
	agreed, known := r.majorityTime()
	if !known {
		return
	}
	off := time.Duration(r.m.clock.time() - agreed)
	if off.Abs() > farOff {
		r.m.opt.Logger.Warn("the clock of this machine is far off: the cluster's time goes by those of the majority", "ahead", off.Round(time.Second))
	}
	r.m.clock.offset.Add(int64(-off))
}

// majorityTime returns the median of the voters' clocks, and of two in the middle the
// earlier one. So one wrong clock of three does not count. known is false if the clocks of a
// majority are not known.
func (r *raftLoop) majorityTime() (time int64, known bool) {
	voters := r.core.Status().Config.Voters[0]
	times := []int64{r.m.clock.time()}
	for id := range voters {
		if p := r.peers[id]; id != r.m.opt.Self.ID && p != nil && p.handshake.Time != 0 {
			times = append(times, r.m.opt.Now()+p.ahead)
		}
	}
	slices.SortFunc(times, func(a, b int64) int { return cmp.Compare(b, a) })
	return times[len(times)/2], len(times) > len(voters)/2
}
