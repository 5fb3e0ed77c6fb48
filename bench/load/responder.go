package load

import (
	"context"
	"errors"
	"net"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Responder answers the commands of a load with the least work that makes the
// answers look right, until ctx is done. It is the bare server that the
// generator's ceiling is measured against, and what a server costs before it has
// done anything for its clients. It takes l, which is of TCP, over and closes it.
//
// A tube is two counters: a put adds one to the jobs that are ready, a reserve
// takes one away or waits, and every job has the body that was put last. A
// delete always succeeds, of the tubes watched only the last one counts, and the
// statistics of a tube tell no more than how many connections wait for it.
//
// One thread serves all connections.
func Responder(ctx context.Context, l net.Listener) error {
	return newResponder().serve(ctx, l)
}

// A responder is its tubes.
type responder struct {
	tubes map[string]*responderTube
}

type responderTube struct {
	puts     uint64
	reserves uint64
	body     []byte
	waiting  []*responderConn // in reserve; oldest first
}

// A responderConn is the peer of one client.
type responderConn struct {
	buffers
	*responder
	parser  wire.Parser
	cmd     wire.Command
	used    *responderTube
	watched *responderTube
	waiting bool // in reserve: what follows stays unparsed
	quits   bool
}

func newResponder() *responder { return &responder{tubes: map[string]*responderTube{}} }

func (r *responder) serve(ctx context.Context, nl net.Listener) error {
	l, err := newLoop()
	if err != nil {
		return errors.Join(err, nl.Close())
	}
	defer l.close()
	if err := l.listen(nl, func() peer { return r.newConn() }); err != nil {
		return err
	}
	return l.run(ctx)
}

func (r *responder) tube(name []byte) *responderTube {
	t := r.tubes[string(name)]
	if t == nil {
		t = new(responderTube)
		r.tubes[string(name)] = t
	}
	return t
}

func (r *responder) newConn() *responderConn {
	t := r.tube([]byte(defaultTube))
	return &responderConn{responder: r, parser: wire.Parser{MaxBody: maxBody}, used: t, watched: t}
}

// received implements peer: it executes the commands that are complete.
func (c *responderConn) received() error {
	for !c.waiting && !c.quits {
		n, whole := c.parser.Next(c.in.unparsed(), &c.cmd)
		if whole {
			c.execute()
		}
		c.in.parsed += n
		if n == 0 && !whole {
			break
		}
	}
	return nil
}

// done implements peer.
func (c *responderConn) done() bool { return c.quits }

// ended implements peer. The other connections go on.
func (c *responderConn) ended(error) error {
	if c.waiting {
		c.watched.waiting = slices.DeleteFunc(c.watched.waiting, func(w *responderConn) bool { return w == c })
	}
	return nil
}

func (c *responderConn) execute() {
	if c.cmd.Fault != wire.None {
		c.out = wire.AppendWord(c.out, c.cmd.Fault.Word())
		return
	}
	switch c.cmd.Op {
	case wire.Put:
		t := c.used
		t.puts++
		t.body = append(t.body[:0], c.cmd.Body...)
		c.out = wire.AppendInserted(c.out, t.puts)
		t.wakeNext()
	case wire.Reserve, wire.ReserveTimeout:
		switch t := c.watched; {
		case t.reserves < t.puts:
			t.reserve(c)
		case c.cmd.Op == wire.ReserveTimeout && c.cmd.Timeout == 0:
			c.out = wire.AppendWord(c.out, wire.TimedOut)
		default:
			c.waiting = true
			t.waiting = append(t.waiting, c)
		}
	case wire.Delete:
		c.out = wire.AppendWord(c.out, wire.Deleted)
	case wire.Use:
		c.used = c.tube(c.cmd.Tube)
		c.out = wire.AppendUsing(c.out, string(c.cmd.Tube))
	case wire.Watch:
		c.watched = c.tube(c.cmd.Tube)
		c.out = wire.AppendWatching(c.out, 1)
	case wire.Ignore:
		c.out = wire.AppendWatching(c.out, 1)
	case wire.StatsTube:
		t := c.tube(c.cmd.Tube)
		c.out = wire.AppendTubeStats(c.out, &wire.TubeStats{Name: string(c.cmd.Tube), Waiting: uint64(len(t.waiting))})
	case wire.Quit:
		c.quits = true
	default:
		c.out = wire.AppendWord(c.out, wire.UnknownCommand)
	}
}

func (t *responderTube) reserve(c *responderConn) {
	t.reserves++
	c.out = wire.AppendReserved(c.out, t.reserves, t.body)
}

// wakeNext gives the job just put to the connection that has waited longest.
func (t *responderTube) wakeNext() {
	if len(t.waiting) == 0 {
		return
	}
	c := t.waiting[0]
	t.waiting = t.waiting[1:]
	c.waiting = false
	t.reserve(c)
	c.received() // what it has sent after the reserve
	c.wake()
}
