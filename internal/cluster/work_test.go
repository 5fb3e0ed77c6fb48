package cluster

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

// Recording a change reads no clock, because that is a system call.
func TestNoClockPerChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := emptySimulation(t, 1)
		var calls atomic.Int64
		sim.clockRead = func() { calls.Add(1) }
		sim.grow(1)
		const puts = 1000
		before := calls.Load()
		sim.must(sim.leader().Broker().Call(func(e *engine.Engine, now int64) {
			for range puts {
				e.PutInto(now, []byte("mail"), engine.Spec{TTR: 60}, []byte("a job"))
			}
		}))
		if n := calls.Load() - before; n > puts/10 {
			t.Errorf("%d puts looked at the clock %d times", puts, n)
		}
		sim.close()
	})
}

// If this member's engine lacks a change that it should have executed, the member stops,
// because this is not a failure of the disk.
func TestNotExecuted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulation(t, 1, 1)
		m := sim.leader()
		m.Broker().Call(func(e *engine.Engine, now int64) {
			e.PutInto(now, []byte("mail"), engine.Spec{TTR: 60}, []byte("a job"))
			m.turn.builder.Add(&engine.Change{Kind: engine.JobDeleted, ID: 77}, m.clock.zero)
			m.turn.built++
		})
		sim.until("the member has ended", func() bool { return errors.Is(m.Err(), journal.ErrNotExecuted) })
		sim.abandon()
	})
}

// After the removal of another member, the last voter still has the record of the removal
// if it loses power at once.
func TestRemovedFromTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulation(t, 1, 2)
		time.Sleep(time.Second)
		stays := sim.nodeOf(sim.leader())
		goes := sim.nodes[stays.id%2]
		sim.must(stays.member.Remove(t.Context(), goes.id))
		var left []*memfs.FS
		for range 20 { // tries all kinds of luck
			left = append(left, stays.disk.Crash(sim.rng))
		}
		stays.kill(false)
		goes.kill(false)
		for _, disk := range left {
			stays.disk = disk
			stays.boot()
			sim.until("the last one leads", func() bool { return stays.member.Lead().Epoch != 0 })
			stays.kill(false)
		}
	})
}
