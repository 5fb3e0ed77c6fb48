package cluster

import "sync/atomic"

// clock is the cluster's time, in nanoseconds since 1970. The leader's clock is the cluster's: entries and
// beacons carry it, so that the next leader goes on from there, and delays keep their lengths whatever
// the clocks of the machines say.
type clock struct {
	now    func() int64 // Options.Now
	epoch  int64        // the cluster's time at which the engine's clock was 0
	offset atomic.Int64 // the cluster's time is now() plus this
}

func (c *clock) time() int64 { return c.now() + c.offset.Load() }

// engine is the engine's clock, for [broker.Options].
func (c *clock) engine() int64 { return max(c.time()-c.epoch, 0) }

// hear takes the time of the leader, as it was when a message was sent. A message that took long says too little, so
// the clock follows those that say more at once, and the others slowly. first: it is the first one of that leader.
func (c *clock) hear(time int64, first bool) {
	offset, said := c.offset.Load(), time-c.now()
	if said < offset && !first {
		said = offset - (offset-said)/16
	}
	c.offset.Store(said)
}

// notBefore makes the clock show at least a time.
func (c *clock) notBefore(time int64) {
	if behind := time - c.time(); behind > 0 {
		c.offset.Add(behind)
	}
}
