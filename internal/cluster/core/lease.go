package core

import (
	"encoding/binary"

	"go.etcd.io/raft/v3"
)

// A lease is a leader's evidence that a majority follows it. Questions have ascending
// numbers. Only one question is in progress at a time, and one more can wait.
type lease struct {
	asked     uint64 // number of the last question
	askedAt   int64  // time at which it was asked
	underWay  bool
	again     bool   // another question must follow it
	confirmed uint64 // number of the last question that was answered
	at        int64  // time at which that question was asked
	none      uint64 // the term that has no lease because of a transfer, or 0
}

// reset discards the evidence: the member is no longer the leader, or is the leader in
// another term.
func (l *lease) reset() {
	l.underWay, l.again, l.at = false, false, 0
}

func (l *lease) forbid(term uint64) { l.none = term }

// leaseTime returns the duration of a lease, counted from its question, in nanoseconds.
func (o *Options) leaseTime() int64 { return int64(o.Tick) * leaseTicks * 9 / 10 }

// LeasedUntil returns the time at which the lease ends, or 0 if there is no lease. Until
// then, only this member can be active. Therefore, this epoch's replies to commands
// without changes can be sent.
func (c *Core) LeasedUntil() int64 {
	l := &c.lease
	if c.lead.Epoch == 0 || l.at == 0 || l.none == c.lead.Term {
		return 0
	}
	return l.at + c.opt.leaseTime()
}

// Ask asks a majority whether this member is still the leader, and returns the number of
// the question. A reply from before the call can be sent when Confirmed reaches that
// number in the same epoch.
func (c *Core) Ask(now int64) uint64 {
	l := &c.lease
	if c.lead.Epoch == 0 {
		return l.asked + 1 // never confirmed: the epoch has ended, so the reply is not sent
	}
	if l.underWay {
		l.again = true
		return l.asked + 1
	}
	c.ask(now)
	return l.asked
}

// Confirmed returns the number of the last question that a majority has answered.
func (c *Core) Confirmed() uint64 { return c.lease.confirmed }

func (c *Core) ask(now int64) {
	l := &c.lease
	l.asked++
	l.askedAt, l.underWay = now, true
	c.node.ReadIndex(c.context(l.asked))
}

// context returns the context of a question. It is unique among all members, processes
// and terms.
func (c *Core) context(number uint64) []byte {
	var b []byte
	for _, v := range [...]uint64{c.opt.ID, c.log.State().Starts, c.lead.Term, number} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

// answered handles the answer to a question.
func (c *Core) answered(r raft.ReadState) {
	l := &c.lease
	if !l.underWay || string(r.RequestCtx) != string(c.context(l.asked)) {
		return
	}
	l.underWay = false
	l.confirmed, l.at = l.asked, l.askedAt
	if l.again {
		l.again = false
		c.ask(l.askedAt) // with the earlier time, which makes the lease shorter
	}
}
