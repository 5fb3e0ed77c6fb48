package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A phase of a run. It only grows.
type phase int32

const (
	warming   phase = iota // load, nothing counted
	measuring              // replies are counted and timed
	stopping               // no new jobs; those under way are finished
	aborted                // leave at once
)

const (
	// stopGrace is how long the server may take to answer what is in flight at
	// the end of a run.
	stopGrace = 10 * time.Second

	dialTimeout = 10 * time.Second
	dialers     = 32 // connections being opened at a time

	backlogInFlight = 64

	defaultTube = "default" // what a new connection uses and watches
)

// A run is the state that one execution of a load shares.
//
// Goroutines: Run's own conducts (it sleeps, changes the phase, reads usage);
// the client's do the work and have all ended when Run returns.
type run struct {
	opt  Options
	base time.Time // what moments are relative to

	// Written by the conductor, and by a client that is told to leave.
	phase atomic.Int32

	// Written by the clients' goroutines.
	failed atomic.Int64 // connections that ended in an error

	// Made before the clients start, filled by them, read after they have ended.
	hists []*hdrhistogram.Histogram
}

// A conn is a connection that has chosen its tube, and its session. Owned by
// the client that drives it.
type conn struct {
	net.Conn
	s    *session
	peer *conn       // the other half of a Wake pair, else nil
	mu   *sync.Mutex // guards s, shared with peer; used by the goroutine client
}

func (r *run) now() int64     { return int64(time.Since(r.base)) }
func (r *run) inPhase() phase { return phase(r.phase.Load()) }

// setPhase advances the phase to ph, if it is not beyond it.
func (r *run) setPhase(ph phase) {
	for {
		old := r.phase.Load()
		if old >= int32(ph) || r.phase.CompareAndSwap(old, int32(ph)) {
			return
		}
	}
}

// histogram makes one more histogram, which becomes part of the result.
func (r *run) histogram() *hdrhistogram.Histogram {
	h := newHistogram()
	r.hists = append(r.hists, h)
	return h
}

// Run puts the load that o describes on the server and returns what it
// measured. It ends early with an error when a connection fails, when a reply
// is not the expected one, or when ctx is done; the Result then counts the
// failed connections and its other figures mean nothing.
func Run(ctx context.Context, o Options) (Result, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Result{}, err
	}
	if o.Backlog > 0 {
		fill := o
		fill.Mix, fill.Ops, fill.Duration, fill.Warmup = Put, o.Backlog, 0, 0
		fill.InFlight = backlogInFlight
		if fill.check() != nil { // large bodies on the goroutine client
			fill.InFlight = 1
		}
		if res, err := execute(ctx, fill); err != nil {
			return res, fmt.Errorf("load: backlog: %w", err)
		}
	}
	return execute(ctx, o)
}

// execute does one run with options that are complete.
func execute(ctx context.Context, o Options) (Result, error) {
	r := &run{opt: o, base: time.Now()}
	res := Result{Options: o}
	conns, err := r.dial(ctx)
	if err != nil {
		return res, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	span, err := r.conduct(ctx, cancel, r.client(conns))
	res.Errors = r.failed.Load()
	if err != nil {
		return res, err
	}
	r.sum(&res, conns, span)
	return res, nil
}

// A span is what the conductor saw of the measured part of a run.
type span struct {
	from, to int64 // ns
	whole    bool  // the clients ended by themselves: the last reply is the end
	server   [2]usage
	client   [2]time.Duration // processor time of this process
}

// A client drives all connections until their scripts are over, or until ctx
// is done. It closes them and has no goroutine left when it returns.
type client func(ctx context.Context) error

// client returns the one that was asked for.
func (r *run) client(conns []*conn) client {
	if r.opt.Client == Epoll {
		return r.epollClient(conns)
	}
	return r.goroutineClient(conns)
}

// conduct leads the client through the phases and returns when it has ended.
func (r *run) conduct(ctx context.Context, cancel context.CancelCauseFunc, drive client) (sp span, err error) {
	done := make(chan error, 1)
	ended := false
	wait := func(d time.Duration) { // d 0: for as long as it takes
		var alarm <-chan time.Time
		if d > 0 {
			t := time.NewTimer(d)
			defer t.Stop()
			alarm = t.C
		}
		select {
		case <-alarm:
		case err = <-done:
			ended = true
		}
	}
	begin := func() {
		sp.server[0], sp.client[0] = readUsage(r.opt.PID), clientCPU()
		sp.from = r.now()
		r.setPhase(measuring)
	}

	if r.opt.Warmup == 0 { // every reply counts, from the first
		begin()
	}
	go func() { done <- drive(ctx) }()
	if r.opt.Warmup > 0 {
		wait(r.opt.Warmup)
		begin()
	}
	if !ended {
		wait(r.opt.Duration)
	}
	sp.whole = ended
	sp.server[1], sp.client[1] = readUsage(r.opt.PID), clientCPU()
	sp.to = r.now()
	if !ended {
		r.setPhase(stopping)
		wait(stopGrace)
	}
	if !ended {
		cancel(fmt.Errorf("load: the server left commands unanswered for %v after the end of the run", stopGrace))
		err = <-done
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause // that is why the client left
	}
	return sp, err
}

// dial opens the connections and lets each choose its tube.
func (r *run) dial(ctx context.Context) ([]*conn, error) {
	sessions, tubes := newSessions(&r.opt)
	conns := make([]*conn, len(sessions))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(dialers)
	for i, s := range sessions {
		g.Go(func() error {
			nc, err := dialServer(gctx, r.opt.Addr)
			if err != nil {
				return err
			}
			conns[i] = &conn{Conn: nc, s: s, mu: new(sync.Mutex)}
			stop := context.AfterFunc(gctx, func() { nc.SetDeadline(longAgo) })
			defer stop()
			return chooseTube(nc, tubes[i])
		})
	}
	if err := g.Wait(); err != nil {
		closeAll(conns)
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	if r.opt.Mix == Wake {
		for i, c := range conns {
			c.peer = conns[i^1]
			c.mu = conns[i&^1].mu
		}
	}
	return conns, nil
}

func closeAll(conns []*conn) {
	for _, c := range conns {
		if c != nil {
			c.Close()
		}
	}
}

func dialServer(ctx context.Context, addr string) (net.Conn, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: -1}
	nc, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("load: connect: %w", err)
	}
	return nc, nil
}

// chooseTube uses and watches one tube only, in one round trip.
func chooseTube(nc net.Conn, tube string) error {
	out := wire.AppendUse(nil, tube)
	out = wire.AppendWatch(out, tube)
	want := []wire.ReplyKind{wire.Using, wire.Watching}
	if tube != defaultTube {
		out = wire.AppendIgnore(out, defaultTube)
		want = append(want, wire.Watching)
	}
	if err := nc.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
		return err
	}
	if _, err := nc.Write(out); err != nil {
		return fmt.Errorf("load: choose tube %q: %w", tube, err)
	}
	var reply wire.Reply
	buf := make([]byte, 0, 1024)
	for len(want) > 0 {
		n, err := nc.Read(buf[len(buf):cap(buf)])
		if err != nil {
			return fmt.Errorf("load: choose tube %q: %w", tube, err)
		}
		buf = buf[:len(buf)+n]
		for len(want) > 0 {
			n, err := wire.ParseReply(buf, &reply)
			if n == 0 && err == nil && len(buf) < cap(buf) {
				break
			}
			if err != nil || n == 0 || reply.Kind != want[0] {
				return fmt.Errorf("load: choose tube %q: the server answered %s", tube, firstLine(buf))
			}
			buf, want = buf[n:], want[1:]
		}
	}
	return nc.SetDeadline(time.Time{})
}

// fail counts a connection that ended in an error. An end that was asked for
// does not count.
func (r *run) fail(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		r.failed.Add(1)
	}
	return err
}

// errHungUp is returned when the server closes a connection.
var errHungUp = errors.New("load: the server closed the connection")

// longAgo as a deadline ends what a connection is blocked in.
var longAgo = time.Unix(1, 0)
