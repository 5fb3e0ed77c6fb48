package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
)

// A phase says what the member's engine does. Only the methods below change
// lifecycle.phase, with mu held. The engine decides while the member is leading, and in no
// other phase.
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

// A lifecycle is what the goroutines of a member tell each other. No goroutine waits for a
// disk, a turn or the network while it holds mu.
type lifecycle struct {
	self   uint64 // id
	now    func() int64
	logger *slog.Logger
	mail   *mailbox        // to the raft loop
	turns  chan struct{}   // has something if a turn is to run for the member itself
	ctx    context.Context // done when the member has failed
	end    context.CancelFunc

	mu            sync.Mutex
	phase         phase
	epoch         uint64        // of leadership, while leading and draining; else 0
	proposals     proposals     // of that epoch
	shared        shared        // what the raft loop says
	changed       sync.Cond     // of shared
	queue         applyQueue    // from the raft loop to the turn
	turnScheduled bool          // a timer will ask for a turn for it
	restored      bool          // a snapshot is to be installed: the log begins after it, durably
	known         Leadership    // what Lead says
	watch         chan struct{} // closed at the next change of that
	err           error         // why the member has failed
}

// shared is what the raft loop tells the others.
type shared struct {
	leader, term uint64
	epoch        uint64 // in force in the core; 0: none
	transferring bool   // the leadership goes to another member, so the epoch is to end
	committed    uint64 // so many proposals of the epoch are
	confirmed    uint64 // the last question that a majority has answered
	leased       int64  // the end of the lease, on Options.Now; 0: no lease
}

// offered returns the epoch in which the engine may decide; 0: none.
func (s *shared) offered() uint64 {
	if s.transferring {
		return 0
	}
	return s.epoch
}

// enter begins a phase. The caller holds mu.
func (l *lifecycle) enter(p phase) {
	if !slices.Contains(after[l.phase], p) {
		panic(fmt.Sprintf("cluster: phase %d after %d", p, l.phase))
	}
	l.phase = p
	l.tell()
}

// follow says that the engine has the entries that were applied and nothing else. The
// caller holds mu.
func (l *lifecycle) follow() {
	l.epoch, l.proposals = 0, proposals{}
	l.enter(following)
	if l.shared.leader == l.self {
		l.activate()
	}
}

// activate says that Raft's leader is this member. The caller, follow or the raft loop,
// holds mu.
func (l *lifecycle) activate() {
	l.enter(activating)
	signal(l.turns)
}

// lead lets the engine decide in an epoch. The caller is a turn, and holds mu.
func (l *lifecycle) lead(epoch uint64) {
	l.epoch, l.proposals = epoch, proposals{}
	l.enter(leading)
}

// drain says that the epoch has ended: the turn under way is the last that decides. The
// caller is the raft loop, and holds mu.
func (l *lifecycle) drain() {
	l.enter(draining)
	signal(l.turns)
}

// load says that the engine has changes that may never be committed, so another one is
// made. The caller is broker.Replace, and holds mu.
func (l *lifecycle) load() {
	l.epoch, l.proposals = 0, proposals{}
	l.enter(loading)
}

// install says that a snapshot takes the place of the journal. The caller is
// broker.Replace, and holds mu.
func (l *lifecycle) install() {
	l.epoch, l.proposals = 0, proposals{}
	l.enter(installing)
}

// fail stops the member, which must not skip what it cannot do. The error is nil if the
// member is closed.
func (l *lifecycle) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == failed {
		return
	}
	if err != nil && err != ErrRemoved { // which is no failure
		l.logger.Error("this member of the cluster stops", "err", err)
	}
	l.err, l.shared = err, shared{}
	l.enter(failed)
	l.end()
	l.changed.Broadcast()
}

// currentPhase returns the phase.
func (l *lifecycle) currentPhase() phase {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase
}

// Lead returns the leader.
func (l *lifecycle) Lead() Leadership {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

// Watch returns a channel that is closed at the next change of Lead.
func (l *lifecycle) Watch() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.watch
}

// tell updates Lead. The epoch in it is that of an engine that decides. The caller holds mu.
func (l *lifecycle) tell() {
	now := Leadership{Leader: l.shared.leader, Term: l.shared.term}
	if l.phase == leading {
		now.Epoch = l.epoch
	}
	if now != l.known {
		l.known = now
		l.announce()
	}
}

// announce wakes all watchers. The caller holds mu.
func (l *lifecycle) announce() {
	close(l.watch)
	l.watch = make(chan struct{})
}

func (l *lifecycle) stopped() bool { return l.ctx.Err() != nil }

// Failed returns a channel that is closed when the member has failed or is closed; Err
// says why.
func (l *lifecycle) Failed() <-chan struct{} { return l.ctx.Done() }

// Err returns why the member has failed, or nil.
func (l *lifecycle) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// wake wakes all watchers after a change of the members.
func (l *lifecycle) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.announce()
}

// setRestored sets restored, and asks for a turn.
func (l *lifecycle) setRestored(restored bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restored = restored
	signal(l.turns)
}

// isRestored returns restored.
func (l *lifecycle) isRestored() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restored
}
