package load

import (
	"context"
	"errors"
	"net"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Responder answers the commands of a load with minimal work until ctx is done. It
// measures the limit of the generator, and the minimum cost of any server. It takes
// ownership of l, which must be a TCP listener, and closes it.
//
// A tube consists of a counter of ready jobs, which a put increments and a reserve
// decrements, and a counter of ids. Every job has the body of the last put. A delete
// always succeeds. Only the tube that was watched last is used. A reserve never waits.
//
// One thread serves all connections.
func Responder(ctx context.Context, l net.Listener) error {
	return newResponder().serve(ctx, l)
}

// A responder contains the tubes of a Responder.
type responder struct {
	tubes map[string]*responderTube
}

type responderTube struct {
	puts     uint64
	reserves uint64
	body     []byte
}

// A responderConn is the peer of one client.
type responderConn struct {
	buffers
	*responder
	parser  wire.Parser
	cmd     wire.Command
	used    *responderTube
	watched *responderTube
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

// received implements peer. It executes the complete commands.
func (c *responderConn) received() error {
	for !c.quits {
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

// ended implements peer. The other connections continue.
func (c *responderConn) ended(error) error { return nil }

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
		c.out = wire.AppendNumber(c.out, wire.Inserted, t.puts)
	case wire.Reserve, wire.ReserveTimeout:
		t := c.watched
		if t.reserves == t.puts {
			c.out = wire.AppendWord(c.out, wire.TimedOut)
			return
		}
		t.reserves++
		c.out = wire.AppendJob(c.out, wire.Reserved, t.reserves, t.body)
	case wire.Delete:
		c.out = wire.AppendWord(c.out, wire.Deleted)
	case wire.Use:
		c.used = c.tube(c.cmd.Tube)
		c.out = wire.AppendUsing(c.out, string(c.cmd.Tube))
	case wire.Watch:
		c.watched = c.tube(c.cmd.Tube)
		c.out = wire.AppendNumber(c.out, wire.Watching, 1)
	case wire.Ignore:
		c.out = wire.AppendNumber(c.out, wire.Watching, 1)
	case wire.PeekReady:
		c.out = wire.AppendWord(c.out, wire.NotFound)
	case wire.Quit:
		c.quits = true
	default:
		c.out = wire.AppendWord(c.out, wire.UnknownCommand)
	}
}
