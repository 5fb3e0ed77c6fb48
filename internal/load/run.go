package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
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

	backlogInFlight = 64
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
	crew []*conn     // all of its crew, itself among them; nil unless the mix is Wake
	mu   *sync.Mutex // guards s, shared by the crew; used by the goroutine client
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
	if err := allowFiles(o.files()); err != nil {
		return Result{}, err
	}
	crowd, err := gather(ctx, &o)
	defer crowd.disperse()
	if err != nil {
		return Result{Options: o}, err
	}
	if res, err := fillBacklog(ctx, o); err != nil {
		return res, err
	}
	res, err := execute(ctx, o, crowd)
	if err != nil {
		return res, err
	}
	return res, crowd.verify(ctx, &o)
}

// fillBacklog puts the jobs of Options.Backlog.
func fillBacklog(ctx context.Context, o Options) (Result, error) {
	if o.Backlog <= 0 {
		return Result{}, nil
	}
	o.Mix, o.Ops, o.Duration, o.Warmup = Put, o.Backlog, 0, 0
	o.InFlight = backlogInFlight
	if o.check() != nil { // large bodies on the goroutine client
		o.InFlight = 1
	}
	res, err := execute(ctx, o, nil)
	if err != nil {
		err = fmt.Errorf("load: backlog: %w", err)
	}
	return res, err
}

// execute does one run with options that are complete.
func execute(ctx context.Context, o Options, crowd *crowd) (Result, error) {
	r := &run{opt: o, base: time.Now()}
	res := Result{Options: o}
	conns, err := r.dial(ctx)
	if err != nil {
		return res, err
	}
	if o.Mix == Wake {
		if err := awaitWorkers(ctx, &o); err != nil {
			closeAll(conns)
			return res, err
		}
		if o.Workers > 0 {
			crowd.count(len(conns))
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	span, err := r.conduct(ctx, cancel, r.client(conns))
	res.Errors = r.failed.Load()
	if err != nil {
		return res, err
	}
	r.sum(&res, conns, span)
	res.Crowd = crowd.usage()
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
