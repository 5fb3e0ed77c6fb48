package cluster

import (
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/core"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

// A raftLoop owns the core. Its methods run in its goroutine.
type raftLoop struct {
	m *Member
	peerTable

	core         *core.Core
	ledSince     int64  // time at which shared.lead.Leader last changed, on Options.Now
	clockSource  uint64 // the leader whose time the clock has; this member, if it used the majority's clocks; or 0
	minMatch     uint64 // all members have the log at least up to this entry
	minReachable uint64 // the same for the members that the leader can reach; on a follower, the start of the leader's log

	// For a member that needs a snapshot; see snapshot.go.
	fetching bool             // true from the start of a fetch until the snapshot is installed or dropped
	fetched  *raftpb.Snapshot // the snapshot until it is offered to Raft; can be nil

	transfer transfer
	health   health
}

// run runs the core.
func (r *raftLoop) run() {
	defer close(r.m.looped)
	defer r.endIfUnreadable()
	ticker := time.NewTicker(r.m.opt.Tick) // a slow loop misses ticks: at most one waits
	defer ticker.Stop()
	r.work()
	for {
		select {
		case <-r.m.mail.wake:
		case <-ticker.C:
			r.tick()
			r.note()
		case <-r.m.Failed():
			return
		}
		calls := r.m.mail.take()
		for _, call := range calls {
			call()
		}
		clear(calls)
		r.work()
	}
}

// endIfUnreadable stops a member if Raft has panicked because its log cannot be read.
func (r *raftLoop) endIfUnreadable() {
	switch v := recover().(type) {
	case nil:
	case *raftlog.ReadError:
		r.m.fail(logError(v))
	default:
		panic(v)
	}
}

func (r *raftLoop) tick() {
	now := r.m.opt.Now()
	if r.stepsDown(now) {
		return // without heartbeats, the others elect another leader
	}
	r.core.Tick(now)
	r.offerSnapshot()
	r.fetchSnapshot()
	r.reportFetching()
	r.manage()
}

// work performs the core's work until none is left.
func (r *raftLoop) work() {
	for {
		work := r.core.Work()
		r.publish()
		r.finishTransfer()
		if work.Idle() {
			return
		}
		if work.Roles != nil {
			r.applyRoles(work.Roles)
		}
		r.m.disk.add(diskWork{writes: work.Write})
		if len(work.Send) > 0 {
			r.addPayload(work.Send)
			r.m.opt.Transport.Send(work.Send)
		}
		r.give(work.Apply)
	}
}

// publish shares the core's state with the other goroutines.
func (r *raftLoop) publish() {
	c := r.core
	now := shared{c.Lead(), r.transfer.to != 0, c.Committed(), c.Confirmed(), c.LeasedUntil()}
	if now.lead.Epoch != 0 && r.clockSource == 0 {
		r.agreeOnTime()
	}
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if c.AwaitsReload() && (r.m.phase == following || r.m.phase == activating) { // the engine has no epoch to end
		r.m.mail.post(r.core.Reloaded)
	}
	if r.m.phase == failed || now == r.m.shared {
		return
	}
	before := r.m.shared
	r.m.shared = now
	if now.lead.Leader != before.lead.Leader {
		r.ledSince = r.m.opt.Now()
	}
	if now.lead != before.lead {
		r.note()
	}
	switch {
	case r.m.phase == leading && now.offered() != r.m.proposals.epoch:
		r.m.drain()
	case r.m.phase == following && now.lead.Leader == r.m.opt.Self.ID:
		r.m.activate()
	case r.m.phase == activating && now.lead.Leader != r.m.opt.Self.ID:
		r.m.follow()
	case r.m.phase == activating:
		signal(r.m.turns)
	}
	r.m.retire()
	r.m.updateLead()
	r.m.changed.Broadcast()
}

// leaderPause and followerPause are the delays before the turn that applies entries. A
// leader usually has an earlier turn.
const (
	leaderPause   = 2 * time.Millisecond
	followerPause = 10 * time.Millisecond // long enough for several entries to share a turn
)

// give queues entries for the turns to apply.
func (r *raftLoop) give(apply []core.Apply) {
	if len(apply) == 0 {
		return
	}
	if r.m.opt.testHook != nil {
		apply = r.m.opt.testHook(r.m, apply)
	}
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	r.m.queue.add(apply)
	pause := leaderPause
	switch {
	case r.m.phase == leading:
	case r.m.phase == activating, r.m.shared.lead.Leader == 0:
		signal(r.m.turns) // clients wait until all entries are applied
		return
	default:
		pause = followerPause
	}
	if !r.m.turnScheduled {
		r.m.turnScheduled = true
		time.AfterFunc(pause, func() {
			r.m.mu.Lock()
			r.m.turnScheduled = false
			r.m.mu.Unlock()
			signal(r.m.turns)
		})
	}
}
