package cluster

import (
	"errors"
	"sync"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster/core"
)

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
func (r *raftLoop) cut(index uint64) {
	r.m.disk.cut(min(index, r.core.Applied().Index), r.minMatch, r.minReachable)
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
func (m *Member) Step(message *raftpb.Message) { m.mail.post(func() { m.raft.step(message) }) }

// Unreachable must be called when messages to another member were lost.
func (m *Member) Unreachable(id uint64) {
	m.mail.post(func() {
		if p := m.raft.peer(id); p.linked {
			p.linked, p.lost = false, m.opt.Now()
		}
		m.raft.core.Unreachable(id)
	})
}

// Rejected must be called when another member has answered this member's handshake with
// an error.
func (m *Member) Rejected(by uint64, err error) {
	m.mail.post(func() {
		m.raft.peer(by).refuses = err
		m.raft.endIfUnwanted(by, err)
	})
}

// Refused must be called when a member's machine has refused a connection to the address
// of its last handshake. term is the term at the start of the attempt. A silent leader
// can be alive and have a lease, but a leader whose port is closed has no process. With
// [Options].FastFailover, the other members then elect a leader at once.
func (m *Member) Refused(id, term uint64) {
	if m.opt.FastFailover {
		m.mail.post(func() { m.raft.forgetLeader(id, term) })
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

// A mailbox contains calls for the raft loop, in order.
type mailbox struct {
	mu    sync.Mutex
	calls []func()
	spare []func()
	wake  chan struct{} // signals the loop
}

func (m *mailbox) post(call func()) {
	m.mu.Lock()
	m.calls = append(m.calls, call)
	m.mu.Unlock()
	signal(m.wake)
}

// take returns the posted calls. The slice is valid until the next call of take.
func (m *mailbox) take() []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := m.calls
	m.calls, m.spare = m.spare[:0], calls
	return calls
}

// signal wakes the goroutine that receives from c, which must have a buffer of one
// element.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
