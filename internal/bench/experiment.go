package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/load"
)

// Options say which servers are to be measured, and how large the experiments
// are. The servers must be given, everything else has a default.
type Options struct {
	// A is the server to compare with, B the one that is compared: ratios are
	// B/A. Cores compares B with itself and needs no A.
	A, B Server

	// Responder, if it has a command, is a process that runs load.Responder. Loads
	// are run on it too.
	Responder Server

	// Rounds is how often each experiment is run on each server. 0 means 5.
	Rounds int

	// Duration is how long each load is measured. 0 means 5 s.
	Duration time.Duration

	// Jobs is the number of jobs in memory, backlog, due and Restart. 0 means
	// 2,000,000, 10,000,000, 1,000,000 and 1,000,000.
	Jobs int64

	// Tubes is the number of tubes in observers. 0 means 100,000, and 10,000 for
	// A: to beanstalkd, each additional tube costs a look at all others.
	Tubes int

	// Settle is how long a server has time to give memory back. 0 means 15 s.
	Settle time.Duration

	// Progress, if not nil, is called before each trial.
	Progress func(experiment, server string, round int)
}

// An Experiment is one question, asked of each server in each round.
type Experiment struct {
	Name  string
	Title string // what is asked, in the heading of its table; may be empty

	figures []Figure // without values
	trial   func(context.Context, *trial) error
	cold    bool // the trial starts the server itself, maybe more than once
	gctrace bool // the trial wants to know about the server's garbage collector
	ceiling bool // the responder can answer it too
	row     bool // see Report

	servers []Server // instead of Options.A and B
}

// withDefaults returns o complete.
func (o Options) withDefaults() Options {
	o.Rounds = cmp.Or(o.Rounds, 5)
	o.Duration = cmp.Or(o.Duration, 5*time.Second)
	o.Settle = cmp.Or(o.Settle, 15*time.Second)
	return o
}

// jobs is the number of jobs asked for, or else n.
func (o *Options) jobs(n int64) int64 { return cmp.Or(o.Jobs, n) }

// Experiments are those of "beanpole bench scale", in the order in which they are
// run.
var Experiments = []func(*Options) Experiment{memory, backlog, due, fairness, observers, cores}

// Names are the names of Experiments.
func Names() []string {
	var names []string
	for _, e := range Experiments {
		names = append(names, e(new(Options)).Name)
	}
	return names
}

// Select returns the experiments with these names, or all if there are none.
func Select(o *Options, names []string) ([]Experiment, error) {
	for _, name := range names {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("no experiment is called %q; there are: %s", name, strings.Join(Names(), ", "))
		}
	}
	var all []Experiment
	for _, make := range Experiments {
		if e := make(o); len(names) == 0 || slices.Contains(names, e.Name) {
			all = append(all, e)
		}
	}
	return all, nil
}

// NeedsA reports whether the experiment needs a server to compare with.
func (e *Experiment) NeedsA() bool { return e.servers == nil }

// Run runs the experiments. One that fails does not keep the others from being
// run: its error is part of the one returned, and the reports are those of the
// experiments that succeeded. When ctx is done it ends. No process and no
// directory is left.
//
// A server that is too slow for an experiment is left out of its other rounds, and
// the report says so.
func Run(ctx context.Context, o Options, experiments []Experiment) ([]Report, error) {
	o = o.withDefaults()
	if err := inheritFiles(); err != nil {
		return nil, err
	}
	var done []Report
	var errs []error
	for i := range experiments {
		e := &experiments[i]
		r, err := e.run(ctx, &o)
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("bench: %s: %w", e.Name, err))
			continue
		}
		done = append(done, r)
	}
	return done, errors.Join(errs...)
}

func (e *Experiment) run(ctx context.Context, o *Options) (Report, error) {
	servers := e.servers
	if servers == nil {
		servers = []Server{o.A, o.B}
	}
	order := []int{sideA, sideB}
	if e.ceiling && len(o.Responder.Command) > 0 {
		servers = append(slices.Clip(servers), o.Responder)
		order = []int{sideResponder, sideA, sideB}
	}
	r := Report{Name: e.Name, Title: e.Title, row: e.row}
	for _, f := range e.figures {
		f.Targets = slices.Clone(f.Targets)
		r.Figures = append(r.Figures, f)
	}
	for i := range servers {
		r.Servers[i] = servers[i].DisplayName()
	}
	for round := range o.Rounds {
		for _, i := range order {
			if r.LeftOut[i] != "" {
				continue
			}
			if o.Progress != nil {
				o.Progress(e.Name, r.Servers[i], round+1)
			}
			t := &trial{Options: o, server: servers[i], isA: i == sideA, values: make(map[string]float64)}
			switch err := t.run(ctx, e); {
			case errors.Is(err, load.ErrTooSlow):
				r.LeftOut[i] = err.Error()
			case err != nil:
				return r, fmt.Errorf("%s: %w", r.Servers[i], err)
			default:
				r.add(i, t.values)
			}
		}
	}
	r.sum()
	return r, nil
}

// A trial is one run of an experiment on a server. Owned by its goroutine.
type trial struct {
	*Options
	*Process // the server, unless the experiment is cold
	server   Server
	isA      bool
	gc       *gcTrace           // nil unless asked for
	values   map[string]float64 // by the name of the figure, in its unit
}

func (t *trial) run(ctx context.Context, e *Experiment) error {
	if e.gctrace {
		t.gc = new(gcTrace)
		t.server.Env = append(slices.Clip(t.server.Env), gcTraceEnv)
		t.server.Output = t.gc
	}
	if e.cold {
		return e.trial(ctx, t)
	}
	return t.start(ctx, func() error { return e.trial(ctx, t) })
}

// start starts the server for the time of f.
func (t *trial) start(ctx context.Context, f func() error) (err error) {
	if t.Process, err = t.server.Start(ctx); err != nil {
		return err
	}
	defer t.Stop()
	if err := f(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return errors.Join(err, t.Died())
	}
	return nil
}

// set gives a figure its value in this trial. A figure that a trial does not set
// is unknown in it.
func (t *trial) set(name string, value float64) { t.values[name] = value }

// setTime is set for a time.
func (t *trial) setTime(name string, d time.Duration) { t.set(name, float64(d)) }

// setRSS is set for the resident memory of the server now, if that is known.
func (t *trial) setRSS(name string) (rss float64) {
	if u, ok := load.UsageOf(t.PID); ok {
		rss = float64(u.RSS)
		t.set(name, rss)
	}
	return rss
}

// The names of the figures of clients.
const (
	throughput    = "throughput"
	p50           = "p50"
	p99           = "p99"
	p999          = "p99.9"
	longest       = "longest"
	cpuPerCommand = "CPU per command"
	peakRSS       = "peak RSS"
)

// clientFigures are what setClients sets: the names end in who the clients are.
func clientFigures(who string) []Figure {
	return append(latencyFigures(who), Figure{Name: throughput + who, Unit: PerSecond})
}

func (t *trial) setClients(who string, r load.Result) {
	t.setLatency(who, r.Latency)
	t.set(throughput+who, r.Throughput)
}

// latencyFigures are what setLatency sets.
func latencyFigures(of string) (all []Figure) {
	for _, name := range []string{p50, p99, longest} {
		all = append(all, Figure{Name: name + of, Unit: Nanoseconds})
	}
	return all
}

func (t *trial) setLatency(of string, l load.Latency) {
	t.setTime(p50+of, l.P50)
	t.setTime(p99+of, l.P99)
	t.setTime(longest+of, l.Max)
}

// interactiveClients is how many clients there are whose latency counts.
const interactiveClients = 8

func (t *trial) clients() load.Options {
	return load.Options{Addr: t.Addr, PID: t.PID, Prefix: "interactive", Connections: interactiveClients, Duration: t.Duration}
}

// interactive are these clients, for a while.
func (t *trial) interactive(ctx context.Context) (load.Result, error) {
	return load.Run(ctx, t.clients())
}

// fill puts n ready jobs into the tube of that name.
func (t *trial) fill(ctx context.Context, tube string, n int64) error {
	return t.bulk(ctx, load.Options{Mix: load.Put, Prefix: tube, Ops: n}, n)
}

// drain takes all jobs out of the tube; they must be n.
func (t *trial) drain(ctx context.Context, tube string, n int64) error {
	return t.bulk(ctx, load.Options{Mix: load.Drain, Prefix: tube}, 2*n)
}

// bulk does something to many jobs as fast as it goes, which must be so many commands.
func (t *trial) bulk(ctx context.Context, o load.Options, commands int64) error {
	o.Addr, o.Connections, o.InFlight = t.Addr, 8, 64
	r, err := load.Run(ctx, o)
	if err == nil && r.Commands != commands {
		err = fmt.Errorf("%s of the jobs took %d commands, not %d", o.Mix, r.Commands, commands)
	}
	return err
}

// sleep waits, unless ctx is done before.
func sleep(ctx context.Context, d time.Duration) error {
	alarm := time.NewTimer(d)
	defer alarm.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-alarm.C:
		return nil
	}
}
