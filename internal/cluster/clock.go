package cluster

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// clock is the cluster's time, in nanoseconds since 1970. The leader defines it; entries
// and heartbeats contain it. The next leader continues from there, so that delays keep
// their lengths even if the machines' clocks differ.
type clock struct {
	now    func() int64 // Options.Now
	zero   int64        // the cluster's time at which the engine's clock showed 0
	offset atomic.Int64 // the cluster's time is now() plus this
	heard  int64        // the last time, on the clock now, at which the leader's time arrived; owned by the raft loop
}

func (c *clock) time() int64 { return c.now() + c.offset.Load() }

// engine is the engine's clock, for [broker.Options].
func (c *clock) engine() int64 { return max(c.time()-c.zero, 0) }

// hear adjusts the clock to the leader's time in a message, in the raft loop. The time is
// outdated if the message was slow. Therefore, the clock moves forward at once. It moves
// back by a sixteenth of the passing time, or at once if it is ahead by more than the
// maximum delay of a message.
func (c *clock) hear(leaderTime int64, mayBeLate int64) {
	now := c.now()
	slower := min(now-c.heard, int64(time.Second)) / 16
	c.heard = now
	c.change(func(before int64) int64 {
		if behind := before - (leaderTime - now); behind > 0 && behind <= mayBeLate {
			return before - min(behind, slower)
		}
		return leaderTime - now
	})
}

// change changes the offset. It is called by turns and by the raft loop.
func (c *clock) change(to func(before int64) int64) {
	for {
		before := c.offset.Load()
		if c.offset.CompareAndSwap(before, to(before)) {
			return
		}
	}
}

// mayBeLate returns the maximum age of the time in a leader's message, in nanoseconds.
func (r *raftLoop) mayBeLate(leader uint64) int64 {
	switch r.clockSource {
	case 0: // so far, the clock is only the machine's clock
		return 0
	case leader:
		return math.MaxInt64
	}
	return latest // a clock that is further ahead is wrong
}

// latest is the maximum delay of a message, in nanoseconds. Package transport closes a
// connection that is silent for longer.
const latest = 5 * int64(time.Second)

// notBefore makes the clock show at least a time.
func (c *clock) notBefore(time int64) {
	now := c.now()
	c.change(func(before int64) int64 { return max(before, time-now) })
}

// farOff is the difference from the majority's clocks above which a machine's clock
// causes a warning.
const farOff = time.Hour

// agreeOnTime sets the clock of a leader that has not received another leader's time. It
// uses the clocks of the majority, because this machine's clock could be a day ahead and
// would end all delays.
func (r *raftLoop) agreeOnTime() {
	r.clockSource = r.m.opt.Self.ID
	agreed, known := r.majorityTime()
	if !known {
		return
	}
	off := time.Duration(r.m.clock.time() - agreed)
	if off.Abs() > farOff {
		r.m.opt.Logger.Warn("the clock of this machine is far off; the cluster uses the majority's clocks", "ahead", off.Round(time.Second))
	}
	r.m.clock.offset.Add(int64(-off))
}

// majorityTime returns the median of the voters' clocks, or the earlier of the two in the
// middle. Therefore, one wrong clock of three has no effect. known is false unless the
// clocks of a majority are available.
func (r *raftLoop) majorityTime() (time int64, known bool) {
	voters := r.core.Status().Config.Voters[0]
	times := []int64{r.m.clock.time()}
	for id := range voters {
		if p := r.peers[id]; id != r.m.opt.Self.ID && p != nil && p.handshake.Time != 0 {
			times = append(times, r.m.opt.Now()+p.clockOffset)
		}
	}
	slices.SortFunc(times, func(a, b int64) int { return cmp.Compare(b, a) })
	return times[len(times)/2], len(times) > len(voters)/2
}
