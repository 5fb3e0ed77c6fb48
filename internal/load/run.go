package load

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"
)

// A phase of a run. It only grows.
type phase int32

const (
	warming   phase = iota // load, nothing counted
	measuring              // replies are counted and timed
	stopping               // no new jobs; those under way are finished
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
// the loops' do the work and have all ended when Run returns.
type run struct {
	opt  Options
	base time.Time // what moments are relative to

	phase atomic.Int32 // written by the conductor

	// Written by the loops' goroutines.
	open    atomic.Int64 // sessions that have not ended
	failed  atomic.Int64 // those that ended in an error
	allDone func()       // called when none is open

	// Made before the loops start, filled by them, read after they have ended.
	sessions []*session
	hists    []*hdrhistogram.Histogram
}

func (r *run) now() int64     { return int64(time.Since(r.base)) }
func (r *run) inPhase() phase { return phase(r.phase.Load()) }

// Run puts the load that o describes on the server and returns what it
// measured. It ends early with an error when a connection fails, when a reply
// is not the expected one, or when ctx is done; the Result then counts the
// failed connections and its other figures mean nothing.
func Run(ctx context.Context, o Options) (Result, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Result{}, err
	}
	if err := checkFiles(o.files()); err != nil {
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
	defer r.hangUp()
	if err := r.dial(ctx); err != nil {
		return res, err
	}
	if o.Mix == Wake {
		if err := awaitWorkers(ctx, &o); err != nil {
			return res, err
		}
		if o.Workers > 0 {
			crowd.count(len(r.sessions))
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	span, err := r.conduct(ctx, cancel, r.drive)
	res.Errors = r.failed.Load()
	if err != nil {
		return res, err
	}
	r.sum(&res, span)
	res.Crowd = crowd.usage()
	return res, nil
}

// A span is what the conductor saw of the measured part of a run.
type span struct {
	from, to int64 // ns
	whole    bool  // the loops ended by themselves: the last reply is the end
	server   [2]usage
	client   [2]time.Duration // processor time of this process
}

// drive divides the connections among the loops and returns when all sessions
// are over, when one has failed, or when ctx is done. All are closed then.
func (r *run) drive(ctx context.Context) error {
	ctx, over := context.WithCancel(ctx)
	defer over()
	r.open.Store(int64(len(r.sessions)))
	r.allDone = over
	g, ctx := errgroup.WithContext(ctx)
	n := r.opt.Threads
	start := func(i int) int { // of loop i; a crew has one loop
		return i * r.opt.Connections / n * len(r.sessions) / r.opt.Connections
	}
	for i := range n {
		l, err := newLoop()
		if err != nil {
			over()
			return errors.Join(err, g.Wait())
		}
		hist := newHistogram()
		r.hists = append(r.hists, hist)
		for _, s := range r.sessions[start(i):start(i+1)] {
			s.tally.hist = hist
			l.join(s.conn, s)
		}
		g.Go(func() error { return l.run(ctx) })
	}
	return g.Wait()
}

// sessionEnded counts a session that has ended.
func (r *run) sessionEnded(err error) {
	if err != nil {
		r.failed.Add(1)
	}
	if r.open.Add(-1) == 0 {
		r.allDone()
	}
}

// conduct leads the loops through the phases and returns when they have ended.
func (r *run) conduct(ctx context.Context, cancel context.CancelCauseFunc, drive func(context.Context) error) (sp span, err error) {
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
		r.phase.Store(int32(measuring))
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
		r.phase.Store(int32(stopping))
		wait(stopGrace)
	}
	if !ended {
		cancel(fmt.Errorf("load: the server left commands unanswered for %v after the end of the run", stopGrace))
		err = <-done
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause // that is why they left
	}
	return sp, err
}

// longAgo as a deadline ends what a connection is blocked in.
var longAgo = time.Unix(1, 0)
