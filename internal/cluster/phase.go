package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
)

// A phase says what the member's engine is there for. lifecycle.phase changes with mu
// held, and only by the methods below. Whoever wants to know whether the engine may
// decide looks here: it does while the member is leading.
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

// A lifecycle is what a member's goroutines tell each other of its phase, and of the
// leadership. Nobody waits for a disk, a turn or the network while holding mu.
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
	turnScheduled bool          // a turn comes for it
	restored      bool          // a snapshot is to be installed, whose log is durable
	known         Leadership    // what Lead says
	watch         chan struct{} // closed at the next change of that
	err           error         // why the member has failed
}

// shared is what the raft loop tells the others.
type shared struct {
	leader, term uint64
	epoch        uint64 // in force in the core; 0: none
	transferring bool   // nothing more is to be decided in it: the leadership goes to another member
	committed    uint64 // so many proposals of the epoch are
	confirmed    uint64 // the last question to a majority that was answered
	leased       int64  // until when nobody else leads, on Options.Now; 0: no lease
}

// offered returns the epoch in which an engine that has applied everything may decide; 0:
// none.
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

// follow begins to follow: the engine is what the entries that were applied make it. The
// caller holds mu.
func (l *lifecycle) follow() {
	l.epoch, l.proposals = 0, proposals{}
	l.enter(following)
	if l.shared.leader == l.self {
		l.activate()
	}
}

// activate says that Raft's leader is this member. The caller is the raft loop, or has
// begun to follow; it holds mu.
func (l *lifecycle) activate() {
	l.enter(activating)
	signal(l.turns)
}

// lead lets the engine decide in an epoch. The caller is a turn, and holds mu.
func (l *lifecycle) lead(epoch uint64) {
	l.epoch, l.proposals = epoch, proposals{}
	l.enter(leading)
}

// drain ends what lead has begun: the turn under way is the last that decides. The caller
// is the raft loop, and holds mu.
func (l *lifecycle) drain() {
	l.enter(draining)
	signal(l.turns)
}

// load says that the engine has done what may never be committed, so that another one is
// made. The caller is a turn between two engines, and holds mu.
func (l *lifecycle) load() {
	l.epoch, l.proposals = 0, proposals{}
	l.enter(loading)
}

// install says that a snapshot takes the place of the journal. The caller is a turn
// between two engines, and holds mu.
func (l *lifecycle) install() {
	l.epoch, l.proposals = 0, proposals{}
	l.enter(installing)
}

// fail ends the member's part in the cluster. What it cannot do, it must not skip. A nil
// error is that of a member that is closed.
func (l *lifecycle) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == failed {
		return
	}
	if err != nil && err != ErrRemoved { // that is no failure of its own
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

// Lead returns who leads.
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

// tell tells those who watch what has changed. This member leads for them only while its
// engine decides. The caller holds mu.
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

// wake lets those look again who wait for a change of the members.
func (l *lifecycle) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.announce()
}

// setRestored says that the log begins after a snapshot, durably, which a turn is to
// install; or that one has.
func (l *lifecycle) setRestored(restored bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restored = restored
	signal(l.turns)
}

// isRestored reports whether a snapshot is to be installed.
func (l *lifecycle) isRestored() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restored
}
