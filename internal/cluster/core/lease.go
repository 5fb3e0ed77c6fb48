package core

import (
	"encoding/binary"

	"go.etcd.io/raft/v3"
)

// A lease is what a leader knows of its majority. Questions have ascending numbers; one
// is under way at a time, and one more may wait.
type lease struct {
	asked     uint64 // number of the last question
	askedAt   int64  // when it was asked
	underWay  bool
	again     bool   // another one is to be asked after it
	confirmed uint64 // number of the last question that was answered
	at        int64  // when that one was asked
	none      uint64 // the term that has no lease, because of a transfer
}

// begin forgets what a leader knew: it leads no more, or in another term.
func (l *lease) begin() {
	l.underWay, l.again, l.at = false, false, 0
}

func (l *lease) forbid(term uint64) { l.none = term }

// leaseTime is how long a lease lasts from the question on, in nanoseconds.
func (o *Options) leaseTime() int64 { return int64(o.Tick) * leaseTicks * 9 / 10 }

// LeasedUntil returns the moment at which the lease ends; 0 if there is none. Until then
// the member is active and no other can be: a reply that was decided in this epoch and
// changes nothing may go.
func (c *Core) LeasedUntil() int64 {
	l := &c.lease
	if c.epoch == 0 || l.at == 0 || l.none == c.term {
		return 0
	}
	return l.at + c.opt.leaseTime()
}

// Ask asks a majority whether this member still leads, and returns the number of the
// question. A reply that was decided before may go when Confirmed has come to that number
// in the same epoch.
func (c *Core) Ask(now int64) uint64 {
	l := &c.lease
	if c.epoch == 0 {
		return l.asked + 1 // which never comes: the epoch is over, and so is the reply
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

// context returns the context of a question, which no other question has: not of another
// member, another life of this one, or another term.
func (c *Core) context(number uint64) []byte {
	var b []byte
	for _, v := range [...]uint64{c.opt.ID, c.log.State().Starts, c.term, number} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

// answered takes the answer to a question.
func (c *Core) answered(r raft.ReadState) {
	l := &c.lease
	if !l.underWay || string(r.RequestCtx) != string(c.context(l.asked)) {
		return
	}
	l.underWay = false
	l.confirmed, l.at = l.asked, l.askedAt
	if l.again {
		l.again = false
		c.ask(l.askedAt) // no later than it was asked for: the lease is the shorter for it
	}
}
