package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Pool is a set of connections to one server. It is safe for concurrent use. It
// connects when necessary, and keeps connections for later calls.
//
// The tubes that a pool's connections use and watch are not specified: methods accept
// tubes as arguments. An empty name means "default".
//
// A pool sends commands on at most [Options].MaxConns connections at the same time. Each
// Reserve, and the jobs that it returns, use an additional connection.
//
// [Pool.Do] executes commands that depend on a connection, such as a release by id, or a
// batch of reserved jobs.
type Pool struct {
	commands

	// Constant after NewPool.
	addr    string // without a token
	url     string // the address passed to NewPool
	opt     Options
	maxIdle int
	slots   chan struct{} // holds a token per connection that sends commands; nil if there is no limit
	done    chan struct{} // closed by Close

	current atomic.Uint32 // see Conn
	waiting atomic.Int32  // calls in get, before they have a connection

	mu struct {
		sync.Mutex
		closed bool
		idle   []idleConn // the most recently used is last
		all    map[*Conn]struct{}
	}
}

// An idleConn is an unused connection of a pool. Code that still has a finished job can
// use the connection by mistake, so the connection can fail at any time.
type idleConn struct {
	*Conn
	using string // tube in use when the connection was returned
}

// NewPool returns a pool of connections to the server or the cluster at addr; see [Dial]
// for addresses. It does not connect; [Pool.Ping] does. opt can be nil.
func NewPool(addr string, opt *Options) (*Pool, error) {
	o := opt.filled()
	c, err := newConn(addr, opt)
	if err != nil {
		return nil, connectError(addr, err)
	}
	p := &Pool{addr: c.addr, url: addr, maxIdle: max(o.MaxIdle, 0), done: make(chan struct{})}
	if opt != nil {
		p.opt = *opt
	}
	p.commands = commands{p}
	if o.MaxConns > 0 {
		p.slots = make(chan struct{}, o.MaxConns)
	}
	p.mu.all = make(map[*Conn]struct{})
	return p, nil
}

// Addr returns the address passed to [NewPool], without the token and the options of a
// URL.
func (p *Pool) Addr() string { return p.addr }

// Close closes all connections, including those in use. Jobs that are still reserved
// become ready again. The error is always nil.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return nil
	}
	p.mu.closed = true
	close(p.done)
	p.mu.idle = nil
	for c := range p.mu.all {
		c.Close()
	}
	return nil
}

// Do calls f with a connection for exclusive use, which uses and watches "default". f
// must not keep the connection. It should finish the jobs that it has reserved; otherwise
// they stay reserved until their times to run expire.
func (p *Pool) Do(ctx context.Context, f func(ctx context.Context, c *Conn) error) error {
	c, err := p.get(ctx, "")
	if err != nil {
		return connectError(p.addr, err)
	}
	defer p.giveUp(c)
	if err := c.WatchOnly(ctx, defaultTube); err != nil {
		return err
	}
	return f(ctx, c)
}

func (p *Pool) checkOut(ctx context.Context, tube string) (*Conn, error) {
	c, err := p.get(ctx, tube)
	if err != nil {
		return nil, err
	}
	if err := c.acquire(ctx); err != nil {
		p.giveUp(c)
		return nil, err
	}
	return c, nil
}

func (p *Pool) checkIn(c *Conn) {
	c.release()
	p.giveUp(c)
}

// giveUp undoes a get.
func (p *Pool) giveUp(c *Conn) {
	p.put(c)
	p.freeSlot()
}

// get returns a connection for commands, one of MaxConns. If possible, the connection
// already uses the tube.
func (p *Pool) get(ctx context.Context, tube string) (*Conn, error) {
	if p.slots != nil {
		p.waiting.Add(1)
		defer p.waiting.Add(-1)
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, fmt.Errorf("all %d connections of the pool for commands are in use (Options.MaxConns): %w", cap(p.slots), context.Cause(ctx))
		case <-p.done:
			return nil, ErrClosed
		}
	}
	c, err := p.take(tube)
	if err != nil {
		p.freeSlot()
	}
	return c, err
}

func (p *Pool) take(tube string) (*Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return nil, ErrClosed
	}
	if n := len(p.mu.idle); n > 0 {
		i := n - 1
		if tube != "" {
			if j := slices.IndexFunc(p.mu.idle, func(c idleConn) bool { return c.using == tube }); j >= 0 {
				i = j
			}
		}
		c := p.mu.idle[i].Conn
		p.mu.idle = slices.Delete(p.mu.idle, i, i+1)
		return c, nil
	}
	c, err := newConn(p.url, &p.opt)
	if err != nil {
		return nil, err
	}
	c.current = &p.current
	p.mu.all[c] = struct{}{}
	return c, nil
}

// put returns a connection to the pool. The pool keeps the MaxIdle most recently used
// connections, or all of them while calls wait for a connection.
func (p *Pool) put(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	using, ok := c.resetForIdle()
	if p.mu.closed || !ok {
		p.drop(c)
		return
	}
	p.mu.idle = append(p.mu.idle, idleConn{c, using})
	if extra := len(p.mu.idle) - p.maxIdle; extra > 0 && p.waiting.Load() == 0 {
		for _, old := range p.mu.idle[:extra] {
			p.drop(old.Conn)
		}
		p.mu.idle = slices.Delete(p.mu.idle, 0, extra)
	}
}

func (p *Pool) drop(c *Conn) {
	delete(p.mu.all, c)
	c.Close()
}

func (p *Pool) freeSlot() {
	if p.slots != nil {
		<-p.slots
	}
}

// Reserve is [Conn.Reserve] for these tubes, or for "default" if there are none. The job
// has its own connection until it is deleted, released, buried or abandoned, so the
// caller must do one of these. Canceling the context loses no job, and does not affect
// other jobs of the pool.
func (p *Pool) Reserve(ctx context.Context, tubes ...string) (*Job, error) {
	return p.reserve(ctx, tubes, func(c *Conn) (*Job, error) { return c.Reserve(ctx) })
}

// ReserveTimeout is [Pool.Reserve] with a timeout, like [Conn.ReserveTimeout].
func (p *Pool) ReserveTimeout(ctx context.Context, d time.Duration, tubes ...string) (*Job, error) {
	return p.reserve(ctx, tubes, func(c *Conn) (*Job, error) { return c.ReserveTimeout(ctx, d) })
}

// reserve lends a connection to the job that f reserves, and returns the job.
func (p *Pool) reserve(ctx context.Context, tubes []string, f func(c *Conn) (*Job, error)) (*Job, error) {
	c, err := p.take("")
	if err != nil {
		return nil, connectError(p.addr, err)
	}
	if len(tubes) == 0 {
		tubes = []string{defaultTube}
	}
	if err = c.WatchOnly(ctx, tubes...); err == nil {
		var job *Job
		if job, err = f(c); err == nil {
			job.pool = p
			return job, nil
		}
	}
	p.put(c)
	return nil, err
}

// finish returns the connection of the job to its pool, unless err shows that the job is
// still reserved.
func (j *Job) finish(err error) error {
	if j.pool == nil || err != nil && !over(err) {
		return err
	}
	j.pool.put(j.conn)
	j.pool = nil
	return err
}

// over reports whether a job might no longer be reserved after its delete, release or
// bury has failed with err.
func over(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrDisconnected) ||
		errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrClosed) || errors.Is(err, ErrProtocol)
}
