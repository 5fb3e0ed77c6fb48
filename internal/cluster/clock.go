package cluster

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// clock is the cluster's time, in nanoseconds since 1970. The leader's clock is the
// cluster's: entries and heartbeats carry it, so that the next leader goes on from there,
// and delays keep their lengths whatever the clocks of the machines say.
type clock struct {
	now    func() int64 // Options.Now
	zero   int64        // the cluster's time at which the engine's clock was 0
	offset atomic.Int64 // the cluster's time is now() plus this
	heard  int64        // when the leader's time was heard last, on now; of the raft loop
}

func (c *clock) time() int64 { return c.now() + c.offset.Load() }

// engine is the engine's clock, for [broker.Options].
func (c *clock) engine() int64 { return max(c.time()-c.zero, 0) }

// hear takes the time of the leader, as it was when a message was sent, in the raft loop.
// A message that took long says too little. So the clock follows those that say more at
// once; for those that say less, by what a late one may, it only goes a sixteenth slower,
// however many of them come together.
func (c *clock) hear(said int64, mayBeLate int64) {
	now, before := c.now(), c.offset.Load()
	offset, slower := said-now, min(now-c.heard, int64(time.Second))/16
	c.heard = now
	if behind := before - offset; behind > 0 && behind <= mayBeLate {
		offset = before - min(behind, slower)
	}
	c.offset.Store(offset)
}

// mayBeLate says how far behind this member's clock a message of a leader may be because
// it took long, in nanoseconds, for clock.hear.
func (r *raftLoop) mayBeLate(leader uint64) int64 {
	switch r.clockSource {
	case 0: // the clock is only that of the machine, and knows no better
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
	if behind := time - c.time(); behind > 0 {
		c.offset.Add(behind)
	}
}

// farOff is how much the clock of a machine may differ from those of the majority before
// that is worth a warning.
const farOff = time.Hour

// agreeOnTime lets a leader that has heard of the cluster's time from nobody, and has
// only the clock of its machine, go by the clocks of the majority: a clock that is a day
// ahead would end all delays.
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

// majorityTime returns the time that the middle one of the voters' clocks shows, of two
// the earlier one: a single one that is wrong is not it, unless only two are known. It is
// false if fewer than a majority have said theirs.
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
