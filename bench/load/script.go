package load

import (
	"math"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A verdict is the result of checking a reply.
type verdict uint8

const (
	unexpected verdict = iota // the reply does not belong to the command: the run has failed
	uncounted                 // the command did no work: TIMED_OUT at the end of a drain
	counted                   // the reply counts, and its latency is recorded
)

// unlimited is a quota without a limit.
const unlimited = math.MaxInt64

// A cycle selects the next command of a session by three rules in this order:
//
//	delete a held job
//	reserve a job, if more were put than reserved (Drain: until TIMED_OUT)
//	put a job
//
// With one command in flight, the result is put, reserve, delete, put, ... With more, the
// three are interleaved as replies arrive. The package comment explains why no reserve
// ever waits.
type cycle struct {
	mix   Mix
	quota int64 // number of jobs that can still be started: puts, or reserves in Drain

	puts, reserves int64    // numbers of sent commands
	toDelete       []uint64 // ids to delete
	empty          bool     // set by Drain when the tube has no more jobs
}

// next returns the next command and, for a delete, the job. The zero Op means that no
// command can be sent before the next reply.
func (c *cycle) next(ph phase) (wire.Op, uint64) {
	if n := len(c.toDelete); n > 0 {
		id := c.toDelete[n-1]
		c.toDelete = c.toDelete[:n-1]
		return wire.Delete, id
	}
	if c.mix == PutReserveDelete && c.reserves < c.puts {
		c.reserves++
		return wire.Reserve, 0
	}
	if c.quota <= 0 || ph >= stopping || c.empty {
		return wire.Unknown, 0
	}
	c.quota--
	if c.mix == Drain {
		return wire.ReserveTimeout, 0
	}
	c.puts++
	return wire.Put, 0
}

// answered is called with each reply, in order.
func (c *cycle) answered(f flight, r *wire.Reply) verdict {
	switch {
	case f.op == wire.Put && r.Kind == wire.Inserted:
		if c.mix == PutDelete {
			c.toDelete = append(c.toDelete, r.ID)
		}
	case f.op == wire.Delete && r.Kind == wire.Deleted:
	case r.Kind == wire.Reserved && (f.op == wire.Reserve || f.op == wire.ReserveTimeout):
		c.toDelete = append(c.toDelete, r.ID)
	case r.Kind == wire.TimedOut && f.op == wire.ReserveTimeout:
		c.empty = true
		return uncounted
	default:
		return unexpected
	}
	return counted
}

// newSessions creates the sessions of a run.
func newSessions(o *Options) []*session {
	body := newBody(o.BodySize)
	var numbers *numbering
	if o.Body != "" {
		body, numbers = newNumbering(o.Body)
	}
	var sessions []*session
	for i := range o.Connections {
		s := newSession(&cycle{mix: o.Mix, quota: o.quota(i)}, o.InFlight, body)
		s.numbers = numbers
		sessions = append(sessions, s)
	}
	return sessions
}

// quota returns the number of jobs of connection i. The connections get nearly equal
// parts of Ops.
func (o *Options) quota(i int) int64 {
	if o.Ops <= 0 {
		return unlimited
	}
	n := int64(o.Connections)
	part := o.Ops / n
	if int64(i) < o.Ops%n {
		part++
	}
	return part
}

// newBody returns n bytes of text without a short period, so that a truncated or shifted
// body is detected.
func newBody(n int) []byte {
	body := make([]byte, n)
	for i := range body {
		body[i] = 'a' + byte((i*i/7+i)%26)
	}
	return body
}
