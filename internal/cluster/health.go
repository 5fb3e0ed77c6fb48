package cluster

import (
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// A health decides whether this member can lead despite the state of its disk, and when
// another member should lead. The raft loop owns it. Times are on Options.Now; 0 means
// never.
type health struct {
	slowSince      int64            // time since which the disk has been too slow
	blockedSince   int64            // time since which the journal has refused jobs
	unblockedSince int64            // time since which it has accepted them again, or 0
	yieldedAt      int64            // time at which the leadership was transferred because of the disk
	asked          map[uint64]int64 // times at which members were asked to lead because of the journal; deleted when a member leads
}

// slowDisk is the time for which a leader's disk can hang or fail before the leader
// transfers the leadership. After goneDisk, the leader resigns without a successor. Each
// slowestDisk bytes add a second, because another member's disk would also need that
// time.
const (
	slowDisk    = int64(time.Second)
	goneDisk    = 3 * int64(time.Second)
	slowestDisk = 8 << 20
)

// yieldAgain and askAgain are the pauses before the leader tries again. A transfer
// disturbs all clients, and a member that has declined would decline again.
const (
	yieldAgain = 5 * int64(time.Minute) // unless the disk counts as gone
	askAgain   = 5 * int64(time.Minute)
)

// observeDisk records the duration of the current writes, and their size.
func (h *health) observeDisk(now, lasts, bytes int64) {
	h.slowSince = 0
	if lasts -= int64(float64(bytes) / slowestDisk * float64(time.Second)); lasts > 0 {
		h.slowSince = now - lasts
	}
}

// observeJournal records whether the journal accepts jobs. On a full disk, the journal
// accepts jobs briefly after cleaning; these short periods do not count.
func (h *health) observeJournal(now int64, blocked bool) {
	switch {
	case !blocked:
		h.unblockedSince = now
	case h.blocked(now) == 0:
		h.blockedSince, h.unblockedSince = now, 0
	default:
		h.unblockedSince = 0
	}
}

// slow returns the duration for which the disk has hung, in nanoseconds.
func (h *health) slow(now int64) int64 {
	if h.slowSince == 0 {
		return 0
	}
	return now - h.slowSince
}

// blocked returns the duration for which the journal has refused jobs, in nanoseconds. It
// returns 0 when the journal has accepted jobs for a while.
func (h *health) blocked(now int64) int64 {
	switch {
	case h.blockedSince == 0, h.unblockedSince != 0 && now-h.unblockedSince >= slowDisk:
		return 0
	case h.unblockedSince != 0:
		return h.unblockedSince - h.blockedSince
	}
	return now - h.blockedSince
}

// A candidacy contains the facts that, in addition to the disk, determine whether a
// leader steps down.
type candidacy struct {
	active       bool   // this member serves clients, or could serve them
	transferring bool   // a transfer is in progress
	others       bool   // there are other voters
	best         uint64 // the reachable voter with the longest log, or 0
	unasked      uint64 // the same, among the voters that were not asked recently
}

// stepDown returns the member that should lead in place of this leader, or 0. If silent
// is true, this member must send no messages, so that the others elect a leader.
func (h *health) stepDown(now int64, c candidacy) (to uint64, silent bool) {
	slow, blocked := h.slow(now), h.blocked(now)
	recently := h.yieldedAt != 0 && now-h.yieldedAt < yieldAgain
	switch {
	case slow >= goneDisk && c.others:
		return 0, true
	case c.transferring:
	case slow >= slowDisk && c.active && !recently:
		return c.best, false
	case blocked >= slowDisk && c.unasked == 0 && !c.active: // this member cannot apply committed entries, so it will never serve clients
		return c.best, false
	case blocked >= slowDisk:
		return c.unasked, false
	}
	return 0, false
}

// stepsDown transfers the leadership if this member's disk hangs or its journal refuses
// jobs. It returns true if this member must be silent.
func (r *raftLoop) stepsDown(now int64) (silent bool) {
	h := &r.health
	lasts, bytes := r.m.disk.lasts(now)
	h.observeDisk(now, max(lasts, r.m.journaling.lasts(now)), bytes+r.m.unsynced.Load())
	if h.slow(now) == 0 && h.blocked(now) == 0 {
		return false
	}
	s := r.core.Status()
	if s.RaftState != raft.StateLeader {
		return false
	}
	to, silent := h.stepDown(now, candidacy{
		active:       r.core.Lead().Epoch != 0,
		transferring: r.transfer.to != 0 || s.LeadTransferee != 0,
		others:       len(s.Config.Voters[0]) > 1,
		best:         r.transferTarget(anyVoter),
		unasked:      r.transferTarget(func(id uint64) bool { at := h.asked[id]; return at == 0 || now-at >= askAgain }),
	})
	switch {
	case silent:
		r.core.Resign()
	case to == 0:
	case h.slow(now) >= slowDisk:
		r.m.opt.Logger.Warn("the disk hangs; transferring the leadership", "for", time.Duration(h.slow(now)), "to", to)
		h.yieldedAt = now
		r.startTransfer(to)
	default:
		r.m.opt.Logger.Warn("the journal refuses jobs; transferring the leadership", "to", to)
		h.asked[to] = now
		r.startTransfer(to)
	}
	return silent
}

// declinesToLead reports whether a message asks this member to lead while its journal
// refuses jobs.
func (r *raftLoop) declinesToLead(message *raftpb.Message) bool {
	if message.GetType() != raftpb.MsgTimeoutNow || r.health.blocked(r.m.opt.Now()) == 0 {
		return false
	}
	r.m.opt.Logger.Warn("declining to lead: the journal of this member refuses jobs", "leader", message.GetFrom())
	return true
}

// busy measures the duration of a turn's work on the journal. Ticks sample the duration,
// because reading the clock for each change would cost more than the change.
type busy struct {
	count atomic.Uint64 // odd while work is in progress

	// The raft loop owns these fields.
	seen  uint64 // count at the last tick at which it had changed
	since int64  // time of that tick, on Options.Now
}

// begin marks the start of work, which lasts until end. It returns false if work is
// already marked.
func (b *busy) begin() bool {
	if b.count.Load()%2 != 0 {
		return false
	}
	b.count.Add(1)
	return true
}

func (b *busy) end() { b.count.Add(1) }

// lasts returns the duration of the current work, in nanoseconds.
func (b *busy) lasts(now int64) int64 {
	n := b.count.Load()
	if n%2 == 0 {
		return 0
	}
	if n != b.seen {
		b.seen, b.since = n, now
	}
	return now - b.since
}
