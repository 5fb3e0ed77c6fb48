package load

import (
	"math"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A script decides which command a session sends next. Owned by its session.
type script interface {
	// next returns the command to send now and, for a delete, the job. The
	// zero Op means: nothing until something has been answered.
	next(now int64, ph phase) (op wire.Op, id uint64)

	// answered is told of each reply, in order, and says what it is worth. The
	// latency of a timed one runs from since.
	answered(f flight, r *wire.Reply) (v verdict, since int64)

	// over reports whether the script, asked for the next command, has no more
	// to send and misses nothing, inFlight commands being unanswered.
	over(inFlight int) bool
}

// A verdict says what becomes of a reply.
type verdict uint8

const (
	unexpected verdict = iota // it does not belong to the command: the run has failed
	uncounted                 // it did no work: TIMED_OUT at the end of a drain
	counted                   // it counts as a command
	timed                     // and its latency is recorded
)

// unlimited is a quota that does not run out.
const unlimited = math.MaxInt64

// A cycle is the script of every mix but Wake. What can be sent at once is
// decided by three rules in this order:
//
//	delete a job that we hold
//	reserve one, if more were put than reserved (Drain: until TIMED_OUT)
//	put one
//
// With one command in flight this is put, reserve, delete, put, ... With more,
// the three are interleaved as replies come in. See the package comment for why
// no reserve ever waits.
type cycle struct {
	mix   Mix
	quota int64 // jobs still to begin: puts, or reserves in Drain

	puts, reserves int64    // sent
	held           []uint64 // ids to delete
	empty          bool     // Drain: the tube has no job left
}

func (c *cycle) next(_ int64, ph phase) (wire.Op, uint64) {
	if n := len(c.held); n > 0 {
		id := c.held[n-1]
		c.held = c.held[:n-1]
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

func (c *cycle) answered(f flight, r *wire.Reply) (verdict, int64) {
	switch {
	case f.op == wire.Put && r.Kind == wire.Inserted:
		if c.mix == PutDelete {
			c.held = append(c.held, r.ID)
		}
	case f.op == wire.Delete && r.Kind == wire.Deleted:
	case r.Kind == wire.Reserved && (f.op == wire.Reserve || f.op == wire.ReserveTimeout):
		c.held = append(c.held, r.ID)
	case r.Kind == wire.TimedOut && f.op == wire.ReserveTimeout:
		c.empty = true
		return uncounted, 0
	default:
		return unexpected, 0
	}
	return timed, f.sent
}

func (c *cycle) over(inFlight int) bool { return inFlight == 0 }

// A pair is what the two halves of a Wake share: a worker that waits in reserve
// and a producer whose put wakes it.
//
// The worker sends delete and the next reserve in one write. The producer puts
// only when that delete has been answered, so that the server has the reserve
// in hand, directly behind; and only when its own last put has been answered.
// The latency is from the put being sent to RESERVED being received.
type pair struct {
	quota   int64 // wakes still to begin
	waiting bool  // the worker's reserve is at the server
	jobOut  bool  // a job was put that the worker has not received
	warm    bool  // the first wake is over: it is not timed, as no delete vouched for its reserve
	ended   bool  // the producer will put no more, and the worker waits for nothing
	putAt   int64 // ns
}

// workerWindow is the number of commands a worker has in flight: delete, reserve.
const workerWindow = 2

type worker struct {
	*pair
	held     uint64 // the job to delete; 0, which is no id, for none
	reserved bool   // a reserve is in flight
}

func (w *worker) next(int64, phase) (wire.Op, uint64) {
	if id := w.held; id != 0 {
		w.held = 0
		return wire.Delete, id
	}
	if w.reserved {
		return wire.Unknown, 0
	}
	w.reserved = true
	w.waiting = w.waiting || !w.warm
	return wire.Reserve, 0
}

func (w *worker) answered(f flight, r *wire.Reply) (verdict, int64) {
	switch {
	case f.op == wire.Reserve && r.Kind == wire.Reserved && w.jobOut:
		w.held = r.ID
		w.reserved, w.jobOut = false, false
		if !w.warm {
			w.warm = true
			return counted, 0
		}
		return timed, w.putAt
	case f.op == wire.Delete && r.Kind == wire.Deleted:
		w.waiting = true
		return counted, 0
	}
	return unexpected, 0
}

func (w *worker) over(int) bool { return w.ended }

type producer struct{ *pair }

func (p *producer) next(now int64, ph phase) (wire.Op, uint64) {
	if !p.waiting {
		return wire.Unknown, 0
	}
	if p.quota <= 0 || ph >= stopping {
		p.ended = true
		return wire.Unknown, 0
	}
	p.quota--
	p.waiting, p.jobOut, p.putAt = false, true, now
	return wire.Put, 0
}

func (p *producer) answered(_ flight, r *wire.Reply) (verdict, int64) {
	if r.Kind != wire.Inserted {
		return unexpected, 0
	}
	return counted, 0
}

func (p *producer) over(int) bool { return p.ended }

// newSessions makes the sessions of a run and, for each, the tube it uses. The
// halves of a pair are neighbours, the worker first.
func newSessions(o *Options) (sessions []*session, tubes []string) {
	body := newBody(o.BodySize)
	for i := range o.Connections {
		quota := int64(unlimited)
		if o.Ops > 0 {
			quota = share(o.Ops, o.Connections, i)
		}
		if o.Mix != Wake {
			sessions = append(sessions, newSession(&cycle{mix: o.Mix, quota: quota}, o.InFlight, body))
			tubes = append(tubes, o.tube(i))
			continue
		}
		p := &pair{quota: quota}
		sessions = append(sessions,
			newSession(&worker{pair: p}, workerWindow, body),
			newSession(&producer{p}, 1, body))
		tubes = append(tubes, o.tube(i), o.tube(i))
	}
	return sessions, tubes
}

// share is the i-th of n nearly equal parts of total.
func share(total int64, n, i int) int64 {
	part := total / int64(n)
	if int64(i) < total%int64(n) {
		part++
	}
	return part
}

// newBody returns n bytes of text that do not repeat with a short period, so
// that a body cut or shifted does not go unnoticed.
func newBody(n int) []byte {
	body := make([]byte, n)
	for i := range body {
		body[i] = 'a' + byte((i*i/7+i)%26)
	}
	return body
}
