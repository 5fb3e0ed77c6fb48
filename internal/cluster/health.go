package cluster

import (
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// A health says whether the disk of this member lets it lead, and when another member is
// to lead. The raft loop owns it. Moments are on Options.Now; 0 is never.
type health struct {
	slowSince      int64            // the disk has been at work for longer than it may take
	blockedSince   int64            // the journal takes no jobs
	unblockedSince int64            // it takes them again; 0: it does not
	yieldedAt      int64            // another member was asked to lead because the disk hung
	asked          map[uint64]int64 // when each member was asked to lead because the journal took no jobs; forgotten when it leads
}

// slowDisk is how long the disk of a leader may hang or fail before the leader asks another
// member to lead, and goneDisk before it resigns without a successor. The disk has besides
// a second for each slowestDisk bytes, which another member's disk would need as well.
const (
	slowDisk    = int64(time.Second)
	goneDisk    = 3 * int64(time.Second)
	slowestDisk = 8 << 20
)

// yieldAgain and askAgain are the times before the leader does so again: a transfer ends
// all clients' connections, and one that was declined would be declined again.
const (
	yieldAgain = 5 * int64(time.Minute) // unless the disk counts as gone
	askAgain   = 5 * int64(time.Minute)
)

// observeDisk notes for how long the present writes have been under way, and their size.
func (h *health) observeDisk(now, lasts, bytes int64) {
	h.slowSince = 0
	if lasts -= int64(float64(bytes) / slowestDisk * float64(time.Second)); lasts > 0 {
		h.slowSince = now - lasts
	}
}

// observeJournal notes whether the journal takes jobs. On a full disk it does for moments,
// after it was cleaned. Those do not count.
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

// slow returns for how long the disk has hung, in nanoseconds.
func (h *health) slow(now int64) int64 {
	if h.slowSince == 0 {
		return 0
	}
	return now - h.slowSince
}

// blocked returns for how long the journal has taken no jobs, in nanoseconds; 0: it takes
// them, and has for a while.
func (h *health) blocked(now int64) int64 {
	switch {
	case h.blockedSince == 0, h.unblockedSince != 0 && now-h.unblockedSince >= slowDisk:
		return 0
	case h.unblockedSince != 0:
		return h.unblockedSince - h.blockedSince
	}
	return now - h.blockedSince
}

// A candidacy is what matters beside the disk for stepping down.
type candidacy struct {
	leader       bool   // Raft's leader is this member
	active       bool   // and it serves clients, or may
	transferring bool   // another one is to lead already
	others       bool   // there are other voters
	best         uint64 // the reachable voter that has most of the log; 0: none
	unasked      uint64 // the same, of those that were not asked lately
}

// stepDown returns the member that is to lead in place of this one; 0: none. silent says
// that this one is to send nothing, so that the others elect a leader.
func (h *health) stepDown(now int64, c candidacy) (to uint64, silent bool) {
	slow, blocked := h.slow(now), h.blocked(now)
	recently := h.yieldedAt != 0 && now-h.yieldedAt < yieldAgain
	switch {
	case !c.leader:
		return 0, false
	case slow >= goneDisk && c.others:
		return 0, true
	case c.transferring:
	case slow >= slowDisk && c.active && !recently:
		return c.best, false
	case blocked >= slowDisk && c.unasked == 0 && !c.active: // it cannot apply what is committed, so it will not serve at all
		return c.best, false
	case blocked >= slowDisk:
		return c.unasked, false
	}
	return 0, false
}

// stepsDown lets another member lead if the disk of this one hangs or takes no jobs. It
// returns true if this member is to be silent.
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
		leader:       true,
		active:       r.core.Epoch() != 0,
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
		r.m.opt.Logger.Warn("the disk hangs: another member is to lead", "for", time.Duration(h.slow(now)), "to", to)
		h.yieldedAt = now
		r.startTransfer(to)
	default:
		r.m.opt.Logger.Warn("the journal takes no jobs: another member is to lead", "to", to)
		h.asked[to] = now
		r.startTransfer(to)
	}
	return silent
}

// declinesToLead reports whether a message asks this member to lead while its journal takes
// no jobs.
func (r *raftLoop) declinesToLead(message *raftpb.Message) bool {
	if message.GetType() != raftpb.MsgTimeoutNow || r.health.blocked(r.m.opt.Now()) == 0 {
		return false
	}
	r.m.opt.Logger.Warn("this member is asked to lead, and declines: its journal takes no jobs", "leader", message.GetFrom())
	return true
}

// busy measures for how long a turn has been at work on the journal. Ticks look at it: to
// read the clock for each change would cost more than the change.
type busy struct {
	count atomic.Uint64 // odd while one is

	// Owned by the raft loop.
	seen  uint64 // what count was when a tick saw it last
	since int64  // when one saw that first, on Options.Now
}

// begin notes that a turn is at work, until end. It returns false if that is noted already.
func (b *busy) begin() bool {
	if b.count.Load()%2 != 0 {
		return false
	}
	b.count.Add(1)
	return true
}

func (b *busy) end() { b.count.Add(1) }

// lasts returns for how long, in nanoseconds.
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
