package cluster

import (
	"fmt"
	"slices"
)

// A phase says what the member's engine is there for. Member.phase changes with mu held,
// and only by the methods below. Whoever wants to know whether the engine may decide looks
// here: it does while the member is leading.
//
//	loading ---> following <---> activating ---> leading
//	   ^             ^                              |
//	   +-------------+---------- draining <---------+
//
// Each but leading may become installing, from which it goes on as following. Each may
// become failed, for good.
type phase uint8

const (
	loading    phase = iota // the engine is made from the journal and the log
	following               // it has what was applied of what is committed
	activating              // the same, and Raft's leader is this member
	leading                 // it decides
	draining                // it decides no more: what it has decided is settled, and its clients leave
	installing              // it is made from a snapshot, which takes the place of the journal
	failed                  // this member takes no part any more
)

// after has the phases that may come after each.
var after = [...][]phase{
	loading:    {following, installing, failed},
	following:  {activating, installing, failed},
	activating: {following, leading, installing, failed},
	leading:    {draining, failed},
	draining:   {following, loading, installing, failed},
	installing: {following, failed},
	failed:     {},
}

// applies reports whether what is committed is applied to the engine.
func (p phase) applies() bool { return p == following || p == activating || p == leading }

// enter begins a phase. The caller holds mu.
func (m *Member) enter(p phase) {
	if !slices.Contains(after[m.phase], p) {
		panic(fmt.Sprintf("cluster: phase %d after %d", p, m.phase))
	}
	m.phase = p
	m.tell()
}

// follow begins to follow: the engine is what the entries that were applied make it. The
// caller holds mu.
func (m *Member) follow() {
	m.epoch, m.proposals = 0, proposals{}
	m.enter(following)
	if m.shared.leader == m.opt.Self.ID {
		m.activate()
	}
}

// activate says that Raft's leader is this member. The caller is the raft loop, or has
// begun to follow; it holds mu.
func (m *Member) activate() {
	m.enter(activating)
	signal(m.turns)
}

// lead lets the engine decide in an epoch. The caller is a turn, and holds mu.
func (m *Member) lead(epoch uint64) {
	m.epoch, m.proposals = epoch, proposals{}
	m.enter(leading)
}

// drain ends what lead has begun: the turn under way is the last that decides. The caller
// is the raft loop, and holds mu.
func (m *Member) drain() {
	m.enter(draining)
	signal(m.turns)
}

// load says that the engine has done what may never be committed, so that another one is
// made. The caller is a turn between two engines, and holds mu.
func (m *Member) load() {
	m.epoch, m.proposals = 0, proposals{}
	m.enter(loading)
}

// install says that a snapshot takes the place of the journal. The caller is a turn between
// two engines, and holds mu.
func (m *Member) install() {
	m.epoch, m.proposals = 0, proposals{}
	m.enter(installing)
}

// fail ends the member's part in the cluster. What it cannot do, it must not skip. A nil
// error is that of a member that is closed.
func (m *Member) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.phase == failed {
		return
	}
	if err != nil && err != ErrRemoved { // that is no failure of its own
		m.opt.Logger.Error("this member of the cluster stops", "err", err)
	}
	m.err, m.shared = err, shared{}
	m.enter(failed)
	close(m.stop)
	m.changed.Broadcast()
}

// now returns the phase.
func (m *Member) now() phase {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.phase
}
