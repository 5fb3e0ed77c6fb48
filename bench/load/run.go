package load

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// A phase is a part of a run. The phases follow in this order.
type phase int32

const (
	warming   phase = iota // load without counting
	measuring              // replies are counted and timed
	stopping               // no new jobs are started; running ones are completed
)

const (
	// stopGrace is the maximum time for the server to answer the commands in flight at
	// the end of a run.
	stopGrace = 10 * time.Second

	dialTimeout = 10 * time.Second
)

// A run is one execution of a load.
//
// Run's own goroutine controls the run: it sleeps, changes the phase, and reads the
// usage. The goroutine of the loop does the work, and has ended when Run returns.
type run struct {
	opt   Options
	base  time.Time // origin of all times
	phase atomic.Int32
	crowd crowd

	// Created before the loop starts, used by its goroutine, and read after it has ended.
	sessions []*session
	tally    tally
}

func (r *run) now() int64     { return int64(time.Since(r.base)) }
func (r *run) inPhase() phase { return phase(r.phase.Load()) }

// Run runs the load described by o and returns the measurements. It returns an error when
// a connection fails, a reply is unexpected, or ctx is done.
func Run(ctx context.Context, o Options) (res Result, err error) {
	if o, err = o.withDefaults(); err != nil {
		return res, err
	}
	r := newRun(o)
	defer r.hangUp()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx) // the cause
		}
	}()
	if err := r.crowd.gather(ctx, &r.opt); err != nil {
		return res, err
	}
	if err := r.fillBacklog(ctx); err != nil {
		return res, fmt.Errorf("load: backlog: %w", err)
	}
	sp, err := r.load(ctx)
	if err != nil {
		return res, err
	}
	return r.result(sp), r.crowd.verify(ctx, &r.opt)
}

// newRun returns a run. o must have all defaults. The caller must call hangUp.
func newRun(o Options) *run {
	return &run{opt: o, base: time.Now(), tally: tally{latencies: NewRecorder()}}
}

// hangUp closes the connections that no loop owns.
func (r *run) hangUp() {
	r.crowd.disperse()
	for _, s := range r.sessions {
		if s.conn != nil {
			s.conn.Close()
		}
	}
}

// fillBacklog puts Options.Backlog jobs.
func (r *run) fillBacklog(ctx context.Context) error {
	o := r.opt
	if o.Backlog == 0 {
		return nil
	}
	o.Mix, o.Ops, o.Duration, o.InFlight = Put, o.Backlog, 0, 64
	fill := newRun(o)
	defer fill.hangUp()
	_, err := fill.load(ctx)
	return err
}

// load connects the sessions and drives them from the first command to the last.
func (r *run) load(ctx context.Context) (span, error) {
	if err := r.connect(ctx); err != nil {
		return span{}, err
	}
	return r.conduct(ctx, r.drive)
}

// connect creates the sessions and opens their connections. Each selects its tube before
// the load starts.
func (r *run) connect(ctx context.Context) error {
	r.sessions = newSessions(&r.opt)
	return prepareAll(ctx, len(r.sessions), "connections have chosen their tube", func(ctx context.Context, i int) error {
		s := r.sessions[i]
		s.run = r
		network, addr := "tcp", r.opt.Addr
		if path, ok := strings.CutPrefix(addr, "unix:"); ok {
			network, addr = "unix", path
		}
		dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: -1}
		nc, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return fmt.Errorf("load: connect: %w", err)
		}
		s.conn = nc
		defer context.AfterFunc(ctx, func() { nc.Close() })()
		if err := s.choose(r.opt.Tube); err != nil {
			return fmt.Errorf("choose tube %q: %w", r.opt.Tube, err)
		}
		_, err = nc.Write(s.out)
		s.out = s.out[:0]
		return err
	})
}

// drive returns when all sessions have ended, one has failed, or ctx is done.
func (r *run) drive(ctx context.Context) error {
	l, err := newLoop()
	if err != nil {
		return err
	}
	defer l.close()
	for _, s := range r.sessions {
		if err == nil {
			err = l.connect(s.conn, s)
		}
	}
	if err == nil {
		err = l.run(ctx)
	}
	return err
}

// A mark is a snapshot at the start or the end of the measurement.
type mark struct {
	server, self Usage // self is the usage of this process
	at           int64 // in ns
}

func (r *run) mark() mark { return mark{UsageOf(r.opt.PID), UsageOf(os.Getpid()), r.now()} }

// A span is the measured part of a run.
type span struct {
	from, to mark
	whole    bool // whether the load ended normally, so that the last reply is the end
}

// conduct controls the phases of the load and returns at its end.
func (r *run) conduct(ctx context.Context, drive func(context.Context) error) (sp span, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	measure := func() {
		sp.from = r.mark()
		r.phase.Store(int32(measuring))
	}
	warmup := r.opt.warmup()
	if warmup == 0 { // every reply counts, starting with the first
		measure()
	}
	go func() {
		defer close(ended)
		err = drive(ctx)
	}()
	if warmup > 0 {
		endsWithin(warmup, ended)
		measure()
	}
	sp.whole = endsWithin(r.opt.Duration, ended)
	sp.to = r.mark()
	r.phase.Store(int32(stopping))
	if !endsWithin(stopGrace, ended) {
		cancel(fmt.Errorf("load: the server left commands unanswered for %v after the end of the run", stopGrace))
		<-ended
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause // the cause of the end
	}
	return sp, err
}

// endsWithin waits up to d for ended to be closed, and reports whether it was closed. If
// d is 0, it waits without a limit.
func endsWithin(d time.Duration, ended <-chan struct{}) bool {
	var alarm <-chan time.Time
	if d > 0 {
		alarm = time.After(d)
	}
	select {
	case <-alarm:
		return false
	case <-ended:
		return true
	}
}
