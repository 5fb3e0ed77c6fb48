package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
)

// A phase is the state of the member's engine. Only the methods below change
// lifecycle.phase, with mu held. The engine can make changes only in the phase leading.
//
//	loading ---> following <---> activating ---> leading
//	   ^             ^                              |
//	   +-------------+---------- draining <---------+
//
// Every phase except leading can become installing, which becomes following. Every phase
// can become failed, which is final.
type phase uint8

const (
	loading    phase = iota // the engine is created from the journal and the log
	following               // the engine contains the applied entries
	activating              // like following, and this member is Raft's leader
	leading                 // the engine can make changes
	draining                // the engine makes no more changes; its turns are settled and its clients suspended
	installing              // the engine is created from a snapshot, which replaces the journal
	failed                  // this member no longer takes part
)

// after lists the possible successors of each phase.
var after = [...][]phase{
	loading:    {following, installing, failed},
	following:  {activating, installing, failed},
	activating: {following, leading, installing, failed},
	leading:    {draining, failed},
	draining:   {following, loading, installing, failed},
	installing: {following, failed},
	failed:     {},
}

// applies reports whether committed entries are applied to the engine in this phase.
func (p phase) applies() bool { return p == following || p == activating || p == leading }

// A lifecycle is the state that a member's goroutines share. No goroutine waits for a
// disk, a turn or the network while it holds mu.
type lifecycle struct {
	self   uint64 // id
	now    func() int64
	logger *slog.Logger
	mail   *mailbox        // mailbox of the raft loop
	turns  chan struct{}   // receives a signal when a turn must run for the member itself
	ctx    context.Context // canceled when the member has failed
	end    context.CancelFunc

	installDue atomic.Bool // the log durably starts after a snapshot, which must be installed

	mu            sync.Mutex
	phase         phase
	proposals     proposals     // proposals of the epoch, in the phases leading and draining
	shared        shared        // set by the raft loop
	changed       sync.Cond     // signals changes of shared
	queue         applyQueue    // entries passed from the raft loop to the turn
	turnScheduled bool          // a timer will request a turn for queue
	known         Leadership    // the leadership that Lead returns
	watch         chan struct{} // closed at the next change of known
	err           error         // the reason why the member has failed
}

// shared is the core's state as published by the raft loop.
type shared struct {
	lead         Leadership
	transferring bool   // a transfer is in progress, so the epoch must end
	committed    uint64 // number of committed proposals in the epoch
	confirmed    uint64 // the last question that a majority has answered
	leased       int64  // end of the lease, on Options.Now, or 0
}

// offered returns the epoch in which the engine can make changes, or 0.
func (s *shared) offered() uint64 {
	if s.transferring {
		return 0
	}
	return s.lead.Epoch
}

// enter starts a phase. The caller holds mu.
func (l *lifecycle) enter(p phase) {
	if !slices.Contains(after[l.phase], p) {
		panic(fmt.Sprintf("cluster: phase %d after %d", p, l.phase))
	}
	l.phase = p
	l.updateLead()
}

// follow enters following: the engine contains exactly the applied entries. The caller
// holds mu.
func (l *lifecycle) follow() {
	l.proposals = proposals{}
	l.enter(following)
	if l.shared.lead.Leader == l.self {
		l.activate()
	}
}

// activate enters activating: this member is Raft's leader. The caller, follow or the
// raft loop, holds mu.
func (l *lifecycle) activate() {
	l.enter(activating)
	signal(l.turns)
}

// lead enters leading: the engine can make changes in the epoch of shared. The caller is
// a turn, and holds mu.
func (l *lifecycle) lead() {
	l.proposals = proposals{epoch: l.shared.lead.Epoch}
	l.enter(leading)
}

// drain enters draining: the epoch has ended, and the current turn is the last that makes
// changes. The caller is the raft loop, and holds mu.
func (l *lifecycle) drain() {
	l.enter(draining)
	signal(l.turns)
}

// load enters loading: the engine has changes that might never be committed, so a new
// engine is created. The caller is broker.Replace, and holds mu.
func (l *lifecycle) load() {
	l.proposals = proposals{}
	l.enter(loading)
}

// install enters installing: a snapshot replaces the journal. The caller is
// broker.Replace, and holds mu.
func (l *lifecycle) install() {
	l.proposals = proposals{}
	l.enter(installing)
}

// fail stops the member, because it must not skip a failed operation. err is nil if the
// member is closed.
func (l *lifecycle) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == failed {
		return
	}
	if err != nil && err != ErrRemoved { // a removal is not a failure
		l.logger.Error("cluster member stopping", "err", err)
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

// Lead returns the current leadership.
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

// updateLead updates Lead. Its epoch is set only while the engine can make changes. The
// caller holds mu.
func (l *lifecycle) updateLead() {
	now := l.shared.lead
	if l.phase != leading {
		now.Epoch = 0
	}
	if now != l.known {
		l.known = now
		l.notify()
	}
}

// notify wakes all watchers. The caller holds mu.
func (l *lifecycle) notify() {
	close(l.watch)
	l.watch = make(chan struct{})
}

func (l *lifecycle) stopped() bool { return l.ctx.Err() != nil }

// Failed returns a channel that is closed when the member has failed or was closed. After
// that, Err returns the reason.
func (l *lifecycle) Failed() <-chan struct{} { return l.ctx.Done() }

// Err returns the reason why the member has failed, or nil.
func (l *lifecycle) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// wake wakes all watchers after a change of the members.
func (l *lifecycle) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notify()
}
