package cluster

import (
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/core"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

// A raftLoop owns the core. Its methods run in its goroutine.
type raftLoop struct {
	*Member
	membership

	core         *core.Core
	ledSince     int64             // since when shared.leader is what it is, on Options.Now
	clockSource  uint64            // the leader whose time was heard last; this member, if nobody's was and it has led
	minMatch     uint64            // all members have the log up to here, as far as is known
	minReachable uint64            // all that the leader can reach have; at a follower, the leader keeps what comes after it
	promoteAt    map[uint64]uint64 // learner -> the entry with which it has caught up

	// Of a member that needs entries which are cut; see snapshot.go.
	fetching bool             // a snapshot is fetched, or was and is not installed or dropped
	fetched  *raftpb.Snapshot // Raft has not been asked yet

	transfer transfer // of the leadership
	health   health
}

// run runs the core.
func (r *raftLoop) run() {
	defer close(r.looped)
	defer r.endIfUnreadable()
	ticker := time.NewTicker(r.opt.Tick) // it drops ticks that come too fast: at most one waits
	defer ticker.Stop()
	r.work()
	for {
		select {
		case <-r.mail.wake:
		case <-ticker.C:
			r.tick()
			r.note()
		case <-r.stop:
			return
		}
		events := r.mail.take()
		for _, e := range events {
			r.handle(e)
		}
		clear(events)
		r.work()
	}
}

// endIfUnreadable ends a member whose log cannot be read: Raft's core can only panic
// then.
func (r *raftLoop) endIfUnreadable() {
	switch v := recover().(type) {
	case nil:
	case *raftlog.ReadError:
		r.fail(logError(v))
	default:
		panic(v)
	}
}

func (r *raftLoop) tick() {
	now := r.opt.Now()
	if r.stepsDown(now) {
		return // without heartbeats the others elect another leader
	}
	r.core.Tick(now)
	r.offerSnapshot()
	r.fetchSnapshot()
	r.manage()
}

// work does what the core wants done.
func (r *raftLoop) work() {
	for {
		work := r.core.Work()
		r.publish()
		r.finishTransfer()
		if work.Idle() {
			return
		}
		if work.Group != nil {
			r.regroup(work.Group)
		}
		r.disk.add(diskWork{writes: work.Write})
		if len(work.Send) > 0 {
			r.addPayload(work.Send)
			r.opt.Transport.Send(work.Send)
		}
		r.give(work.Apply)
	}
}

// publish tells the others what the core says.
func (r *raftLoop) publish() {
	c := r.core
	leader, term := c.Leader()
	now := shared{leader, term, c.Epoch(), r.transfer.to != 0, c.Committed(), c.Confirmed(), c.LeasedUntil()}
	if now.epoch != 0 && r.clockSource == 0 {
		r.agreeOnTime()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.AwaitsRebuilt() && (r.phase == following || r.phase == activating) { // there is no epoch that the engine has to end
		r.mail.post(engineFollows{})
	}
	if r.phase == failed || now == r.shared {
		return
	}
	before := r.shared
	r.shared = now
	if now.leader != before.leader {
		r.ledSince = r.opt.Now()
	}
	if now.leader != before.leader || now.term != before.term || now.epoch != before.epoch {
		r.note()
	}
	switch {
	case r.phase == leading && now.offered() != r.epoch:
		r.drain()
	case r.phase == following && now.leader == r.opt.Self.ID:
		r.activate()
	case r.phase == activating && now.leader != r.opt.Self.ID:
		r.follow()
	case r.phase == activating:
		signal(r.turns)
	}
	r.retire()
	r.tell()
	r.changed.Broadcast()
}

// How soon there is a turn for what is to be applied. At a leader there usually is
// another one before.
const (
	leaderPause   = 2 * time.Millisecond
	followerPause = 10 * time.Millisecond // so many entries share a turn
)

// give hands over entries that are to be applied.
func (r *raftLoop) give(apply []core.Apply) {
	if len(apply) == 0 {
		return
	}
	if r.opt.testHook != nil {
		apply = r.opt.testHook(r.Member, apply)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue.add(apply)
	pause := leaderPause
	switch {
	case r.phase == leading:
	case r.phase == activating, r.shared.leader == 0:
		signal(r.turns) // nobody is served before all is applied
		return
	default:
		pause = followerPause
	}
	if !r.turnScheduled {
		r.turnScheduled = true
		time.AfterFunc(pause, func() {
			r.mu.Lock()
			r.turnScheduled = false
			r.mu.Unlock()
			signal(r.turns)
		})
	}
}
