package load

import (
	"context"
	"net"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Responder answers the commands of a load with the least work that makes the
// answers look right, until ctx is done. It is the bare server that the
// generator's ceiling is measured against (see Ceiling), and what a server
// costs before it has done anything for its clients. It takes l over and
// closes it.
//
// A tube is two counters: a put adds one to the jobs that are ready, a reserve
// takes one away or waits, and every job has the body that was put last. A
// delete always succeeds, of the tubes watched only the last one counts, and the
// statistics of a tube tell no more than how many connections wait for it.
//
// On Linux it is one thread with one epoll loop, elsewhere a goroutine per
// connection.
func Responder(ctx context.Context, l net.Listener) error {
	return newResponder().serve(ctx, l)
}

// A responder is its tubes. Owned by one goroutine at a time.
type responder struct {
	tubes map[string]*responderTube
}

type responderTube struct {
	puts     uint64
	reserves uint64
	body     []byte
	waiting  []*responderConn // in reserve; from next on, oldest first
	next     int
}

// A responderConn is a connection as bytes: in[r:w] has been read and not
// parsed, out has not been written.
type responderConn struct {
	parser  wire.Parser
	cmd     wire.Command
	in      []byte
	r, w    int
	out     []byte
	used    *responderTube
	watched *responderTube
	waits   bool // in reserve: what follows stays unparsed
	quits   bool
	woken   func() // called when another connection's put has ended the wait
}

func newResponder() *responder {
	return &responder{tubes: map[string]*responderTube{defaultTube: {}}}
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
	t := r.tubes[defaultTube]
	return &responderConn{
		parser:  wire.Parser{MaxBody: maxBody},
		in:      make([]byte, 2*minSpace),
		used:    t,
		watched: t,
	}
}

// space returns where the next read goes; empty only while the connection waits
// and its buffer is full.
func (c *responderConn) space() []byte {
	if c.r > 0 && c.w-c.r < minSpace {
		c.w = copy(c.in, c.in[c.r:c.w])
		c.r = 0
	}
	if need := c.parser.Need(); !c.waits && len(c.in)-c.r < max(need, c.w-c.r+minSpace) {
		bigger := make([]byte, max(need, 2*len(c.in)))
		c.w = copy(bigger, c.in[c.r:c.w])
		c.in, c.r = bigger, 0
	}
	return c.in[c.w:]
}

// answer runs the commands that are complete.
func (r *responder) answer(c *responderConn) {
	for !c.waits && !c.quits && c.r < c.w {
		n, ok := c.parser.Next(c.in[c.r:c.w], &c.cmd)
		c.r += n
		if ok {
			r.execute(c)
		} else if n == 0 {
			break
		}
	}
	if c.r == c.w {
		c.r, c.w = 0, 0
	}
}

func (r *responder) execute(c *responderConn) {
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
			c.waits = true
			t.waiting = append(t.waiting, c)
		}
	case wire.Delete:
		c.out = wire.AppendWord(c.out, wire.Deleted)
	case wire.Use:
		c.used = r.tube(c.cmd.Tube)
		c.out = wire.AppendUsing(c.out, string(c.cmd.Tube))
	case wire.Watch:
		c.watched = r.tube(c.cmd.Tube)
		c.out = wire.AppendWatching(c.out, 1)
	case wire.Ignore:
		c.out = wire.AppendWatching(c.out, 1)
	case wire.StatsTube:
		t := r.tube(c.cmd.Tube)
		c.out = wire.AppendTubeStats(c.out, &wire.TubeStats{Name: string(c.cmd.Tube), Waiting: uint64(len(t.waiting) - t.next)})
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
	if t.next == len(t.waiting) {
		return
	}
	c := t.waiting[t.next]
	t.waiting[t.next] = nil
	t.next++
	if t.next > len(t.waiting)/2 { // few are moved for each that has left
		t.waiting = slices.Delete(t.waiting, 0, t.next)
		t.next = 0
	}
	c.waits = false
	t.reserve(c)
	c.woken()
}

// forget drops a connection that has ended.
func (c *responderConn) forget() {
	if !c.waits {
		return
	}
	t := c.watched
	if i := slices.Index(t.waiting, c); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
}

// serveGoroutines serves with a goroutine per connection, one more that accepts,
// and a lock around the counters. All have ended when it returns.
func (r *responder) serveGoroutines(ctx context.Context, l net.Listener) error {
	g, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer l.Close()
	var mu sync.Mutex
	g.Go(func() error {
		for {
			nc, err := l.Accept()
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			g.Go(func() error {
				defer nc.Close()
				stop := context.AfterFunc(ctx, func() { nc.Close() })
				defer stop()
				r.talk(nc, &mu)
				return nil
			})
		}
	})
	return g.Wait()
}

// talk serves one connection until its peer leaves.
func (r *responder) talk(nc net.Conn, mu *sync.Mutex) {
	mu.Lock()
	c := r.newConn()
	mu.Unlock()
	write := func() error { // with mu held
		_, err := nc.Write(c.out)
		c.out = c.out[:0]
		return err
	}
	// Commands behind the reserve stay unparsed until more arrive: the buffer
	// belongs to the goroutine that reads. If the write fails, so will its read.
	c.woken = func() { _ = write() }
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		c.forget()
	}()
	for !c.quits {
		mu.Lock()
		space := c.space()
		mu.Unlock()
		if len(space) == 0 {
			return // a client that fills the buffer behind a waiting reserve
		}
		n, err := nc.Read(space)
		if err != nil {
			return
		}
		mu.Lock()
		c.w += n
		r.answer(c)
		err = write()
		mu.Unlock()
		if err != nil {
			return
		}
	}
}
