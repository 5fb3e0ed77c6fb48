package cluster

import (
	"errors"
	"sync"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/core"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

// An event is a value of one of these types, or a func() that the raft loop calls.
type event any

type (
	// proposed: turns have entries to commit.
	proposed struct {
		epoch   uint64
		entries [][]byte
	}
	// asked: a Sync asks whether this member is still the leader. The loop sets the
	// number of the question, with lifecycle.mu held.
	asked struct{ number *uint64 }
	// received: a message from another member has arrived.
	received struct{ message *raftpb.Message }
	// finished: a Write of the core is durable, or an Apply is complete.
	finished struct{ responses []*raftpb.Message }
	// unreachable: messages to another member were lost.
	unreachable struct{ id uint64 }
	// refusedConnection: the machine of a term's leader refuses connections.
	refusedConnection struct{ id, term uint64 }
	// rejected: another member refuses this member.
	rejected struct {
		by  uint64
		err error
	}
	// journalSynced: the journal durably contains all entries up to at.
	journalSynced struct{ at raftlog.Position }
	// journalBlocked: the journal now refuses jobs, or accepts them again.
	journalBlocked struct {
		at      int64 // time on Options.Now
		blocked bool
	}
	// epochSettled: all turns of the ended epoch are settled.
	epochSettled struct{}
	// engineFollows: the engine has left the ended epoch.
	engineFollows struct{}
	// fetched: a snapshot was fetched. snapshot is nil if this failed or the snapshot was
	// dropped.
	fetched struct{ snapshot *raftpb.Snapshot }
	// installed: the engine contains the snapshot with which the log starts.
	installed struct{}
	// sent: the transfer of a snapshot to another member has ended.
	sent struct {
		to  uint64
		err error
	}
)

// handle handles an event, in the raft loop.
func (r *raftLoop) handle(e event) {
	switch e := e.(type) {
	case func():
		e()
	case proposed:
		if err := r.core.Propose(e.epoch, e.entries...); err != nil {
			r.m.opt.Logger.Debug("the entries of a turn were refused", "epoch", e.epoch, "err", err)
		}
	case asked:
		n := r.core.Ask(r.m.opt.Now())
		r.m.mu.Lock()
		*e.number = n
		r.m.changed.Broadcast()
		r.m.mu.Unlock()
	case received:
		r.step(e.message)
	case finished:
		r.core.Done(e.responses)
	case unreachable:
		if p := r.peer(e.id); p.linked {
			p.linked, p.lost = false, r.m.opt.Now()
		}
		r.core.Unreachable(e.id)
	case refusedConnection:
		r.forgetLeader(e.id, e.term)
	case rejected:
		r.peer(e.by).refuses = e.err
		r.endIfUnwanted(e.by, e.err)
	case journalSynced:
		r.cut(e.at)
	case journalBlocked:
		r.health.observeJournal(e.at, e.blocked)
	case epochSettled:
		r.transfer.settled = true
		r.finishTransfer() // before Reloaded, in case the core must resign
	case engineFollows:
		r.core.Reloaded()
	case fetched:
		r.fetched, r.fetching = e.snapshot, e.snapshot != nil
		r.offerSnapshot()
	case installed:
		r.fetching = false
		r.core.Installed()
	case sent:
		r.peer(e.to).fetches--
		if e.err != nil {
			r.core.SnapshotFailed(e.to)
		}
	default:
		panic("cluster: an event of no known type")
	}
}

// step passes another member's message to the core.
func (r *raftLoop) step(message *raftpb.Message) {
	from := message.GetFrom()
	r.heardOf(from, message)
	r.takePayload(message)
	if r.declinesToLead(message) {
		return
	}
	err := core.ErrContradiction
	if !isContradiction(message) {
		err = r.core.Step(message)
	}
	switch {
	case errors.Is(err, core.ErrContradiction):
		r.contradicted(message)
	case err != nil:
		r.m.opt.Logger.Debug("ignored a message from another member", "from", from, "type", message.GetType(), "err", err)
	}
	if message.GetType() == raftpb.MsgSnap {
		r.fetchSnapshot()
	}
}

// cut cuts the log at an entry that is durable in the journal and applied by the core.
// Both are required, because the roles in all removed entries must be recorded, and after
// a start, the journal can be ahead of the core.
func (r *raftLoop) cut(at raftlog.Position) {
	if applied := r.core.Applied(); applied.Index < at.Index {
		at = applied
	}
	r.m.disk.add(diskWork{cut: at, minMatch: r.minMatch, minReachable: r.minReachable})
}

// forgetLeader lets the members elect another leader at once, if the machine that refuses
// connections still belongs to the term's leader.
func (r *raftLoop) forgetLeader(id, term uint64) {
	if !r.core.Forget(id, term) {
		return
	}
	r.m.opt.Logger.Info("the leader's machine refuses connections; electing another leader", "leader", id, "term", term)
	// The members run for election one after the other, because a split vote costs an
	// election timeout, and each vote needs a sync.
	turn := 0
	for _, k := range r.members {
		if k.ID != id && k.ID < r.m.opt.Self.ID {
			turn++
		}
	}
	time.AfterFunc(standAfter+time.Duration(turn)*standEvery, func() { r.m.mail.post(func() { r.core.Stand(term) }) })
}

const (
	standAfter = 20 * time.Millisecond
	standEvery = 120 * time.Millisecond
)

// Step handles a message from another member.
func (m *Member) Step(message *raftpb.Message) { m.mail.post(received{message}) }

// Unreachable must be called when messages to another member were lost.
func (m *Member) Unreachable(id uint64) { m.mail.post(unreachable{id}) }

// Rejected must be called when another member has answered this member's handshake with
// an error.
func (m *Member) Rejected(by uint64, err error) { m.mail.post(rejected{by, err}) }

// Refused must be called when a member's machine has refused a connection to the address
// of its last handshake. term is the term at the start of the attempt. A silent leader
// can be alive and have a lease, but a leader whose port is closed has no process. With
// [Options].FastFailover, the other members then elect a leader at once.
func (m *Member) Refused(id, term uint64) {
	if m.opt.FastFailover {
		m.mail.post(refusedConnection{id, term})
	}
}

// inLoop runs f in the raft loop and waits for it. It returns false if the member has
// failed or was closed.
func (m *Member) inLoop(f func()) bool {
	done := false
	ran := make(chan struct{})
	m.mail.post(func() { f(); done = true; close(ran) })
	select {
	case <-ran:
	case <-m.looped: // f will not run later, but might have run
	}
	return done
}

// A mailbox contains the events that the raft loop has not handled, in order.
type mailbox struct {
	mu     sync.Mutex
	events []event
	spare  []event
	wake   chan struct{} // signals the loop
}

func (m *mailbox) post(e event) {
	m.mu.Lock()
	m.events = append(m.events, e)
	m.mu.Unlock()
	signal(m.wake)
}

// take returns the posted events. The slice is valid until the next call.
func (m *mailbox) take() []event {
	m.mu.Lock()
	defer m.mu.Unlock()
	events := m.events
	m.events, m.spare = m.spare[:0], events
	return events
}

// signal wakes the goroutine that receives from c, which must have a buffer of one
// element.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
