package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A crew is the sessions of a Wake: workers that wait in reserve, and producers whose
// puts wake them.
//
// A worker sends delete and the next reserve in one write. A producer puts only when
// its last job was deleted: then the server has received the next reserve of that
// worker too. There are at least as many workers as producers, and all of them wait when
// the load begins. So each put finds a waiting worker, and there are as many jobs under
// way as producers, however many workers there are.
//
// The latency is from the put being sent to RESERVED being received. The job itself has
// to say whose it is: its body begins with the producer's number.
type crew struct {
	sessions  []*session // the producers' first
	producers []producer
	active    int         // producers that have not ended
	unblocked []*producer // their jobs were deleted: they may put again
}

// stampSize is how many bytes of a body hold the producer's number.
const stampSize = 4

// errNoProducer ends the loop of a crew: its workers would wait for ever.
var errNoProducer = errors.New("load: all producers have ended")

// proceed lets the producers put that may because of what a worker was told.
func (c *crew) proceed(now int64, ph phase) {
	for _, p := range c.unblocked {
		s := c.sessions[p.number]
		s.fill(now, ph)
		s.wake()
	}
	c.unblocked = c.unblocked[:0]
}

// producerOf returns the producer whose job has this body, or nil if there is none.
func (c *crew) producerOf(body []byte) *producer {
	if len(body) < stampSize {
		return nil
	}
	n := int(binary.BigEndian.Uint32(body))
	if n >= len(c.producers) || !c.producers[n].jobOut {
		return nil
	}
	return &c.producers[n]
}

// A producer is the script of a connection that puts.
type producer struct {
	crew   *crew
	number int
	quota  int64 // wakes still to begin
	putAt  int64 // ns
	jobOut bool  // its job was put, and not received by a worker
	busy   bool  // its job was put, and not deleted
	ended  bool  // it will put no more
}

func (p *producer) next(now int64, ph phase) (wire.Op, uint64) {
	if p.busy || p.ended {
		return wire.Unknown, 0
	}
	if p.quota <= 0 || ph >= stopping {
		p.ended = true
		p.crew.active--
		return wire.Unknown, 0
	}
	p.quota--
	p.busy, p.jobOut, p.putAt = true, true, now
	return wire.Put, 0
}

func (p *producer) answered(_ flight, r *wire.Reply) (verdict, int64) {
	if r.Kind != wire.Inserted {
		return unexpected, 0
	}
	return counted, 0
}

func (p *producer) done(int) bool { return p.ended }

// A worker is the script of a connection that waits.
type worker struct {
	crew     *crew
	toDelete uint64    // the job to delete; 0, which is no id, for none
	from     *producer // who put the job that it received last
	reserved bool      // a reserve is in flight
}

// workerWindow is the number of commands a worker has in flight: delete, reserve.
const workerWindow = 2

func (w *worker) next(int64, phase) (wire.Op, uint64) {
	if id := w.toDelete; id != 0 {
		w.toDelete = 0
		return wire.Delete, id
	}
	if w.reserved {
		return wire.Unknown, 0
	}
	w.reserved = true
	return wire.Reserve, 0
}

func (w *worker) answered(f flight, r *wire.Reply) (verdict, int64) {
	switch {
	case f.op == wire.Reserve && r.Kind == wire.Reserved:
		p := w.crew.producerOf(r.Body)
		if p == nil {
			return unexpected, 0
		}
		p.jobOut = false
		w.toDelete, w.from, w.reserved = r.ID, p, false
		return timed, p.putAt
	case f.op == wire.Delete && r.Kind == wire.Deleted:
		w.from.busy = false
		w.crew.unblocked = append(w.crew.unblocked, w.from)
		return counted, 0
	}
	return unexpected, 0
}

func (w *worker) done(int) bool { return false }

// newCrew makes the sessions of a Wake, whose jobs have the body.
func newCrew(o *Options, body []byte) *crew {
	c := &crew{producers: make([]producer, o.Connections), active: o.Connections}
	for n := range c.producers {
		c.producers[n] = producer{crew: c, number: n, quota: o.quota(n)}
		c.sessions = append(c.sessions, newSession(&c.producers[n], 1, stamped(body, n)))
	}
	for range o.Workers {
		s := newSession(&worker{crew: c}, workerWindow, body)
		s.fill(0, warming) // the reserve that it waits in when the load begins
		c.sessions = append(c.sessions, s)
	}
	for _, s := range c.sessions {
		s.crew = c
	}
	return c
}

// stamped returns body as producer n puts it.
func stamped(body []byte, n int) []byte {
	body = slices.Clone(body)
	binary.BigEndian.PutUint32(body, uint32(n))
	return body
}

// awaitWorkers returns when all workers wait, so that each put wakes one.
func awaitWorkers(ctx context.Context, o *Options) error {
	const poll = 5 * time.Millisecond
	waiting := 0
	return prepare(ctx, func(ctx context.Context) error {
		c, err := client.Dial(ctx, o.Addr, nil)
		if err != nil {
			return err
		}
		defer c.Close()
		for {
			st, err := c.StatsTube(ctx, o.Tube)
			if err != nil {
				return err
			}
			if waiting = int(st.Waiting); waiting >= o.Workers {
				return nil
			}
			time.Sleep(poll)
		}
	}, func() string { return fmt.Sprintf("%d of %d workers wait", waiting, o.Workers) })
}
