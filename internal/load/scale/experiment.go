package scale

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
	A, B load.Server

	// Only has the names of the experiments to run; empty means all.
	Only []string

	// Rounds is how often each experiment is run on each server. 0 means 3.
	Rounds int

	// Duration is how long each load is measured. 0 means 5 s.
	Duration time.Duration

	// Jobs is the number of jobs in memory, backlog and due. 0 means 2,000,000,
	// 10,000,000 and 1,000,000.
	Jobs int64

	// Tubes is the number of tubes in observers. 0 means 100,000, and 10,000 for
	// A: to beanstalkd, each additional tube costs a look at all others.
	Tubes int

	// Settle is how long a server has time to give memory back. 0 means 15 s.
	Settle time.Duration

	// Progress, if not nil, is called before each trial.
	Progress func(experiment, server string, round int)
}

// An experiment is one question. Its trial is run on each server in each round.
type experiment struct {
	name    string
	title   func(*Options) string
	figures []figure
	trial   func(context.Context, *trial) error

	// sides, if not nil, makes two servers of B, which are then compared.
	sides func(b load.Server) (load.Server, load.Server)

	gctrace bool // the trial wants to know about the server's garbage collector
}

// experiments are all that there are, in the order in which they are run.
var experiments = []experiment{memory, backlog, due, fairness, observers, cores}

// Names are the names of all experiments.
func Names() []string {
	names := make([]string, len(experiments))
	for i := range experiments {
		names[i] = experiments[i].name
	}
	return names
}

// NeedsA returns the first experiment asked for that needs a server to compare
// with, or "".
func (o *Options) NeedsA() string {
	for i := range experiments {
		if e := &experiments[i]; e.sides == nil && o.wants(e) {
			return e.name
		}
	}
	return ""
}

func (o *Options) wants(e *experiment) bool {
	return len(o.Only) == 0 || slices.Contains(o.Only, e.name)
}

func (o Options) withDefaults() (Options, error) {
	o.Rounds = cmp.Or(o.Rounds, 3)
	o.Duration = cmp.Or(o.Duration, 5*time.Second)
	o.Settle = cmp.Or(o.Settle, 15*time.Second)
	for _, name := range o.Only {
		if !slices.Contains(Names(), name) {
			return o, fmt.Errorf("scale: no experiment is called %q; there are: %s", name, strings.Join(Names(), ", "))
		}
	}
	return o, nil
}

// Run runs the experiments. One that fails does not keep the others from being
// run: its error is part of the one returned, and the reports are those of the
// experiments that succeeded. When ctx is done it ends. No process is left.
func Run(ctx context.Context, o Options) ([]Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	var done []Report
	var errs []error
	for i := range experiments {
		e := &experiments[i]
		if !o.wants(e) {
			continue
		}
		r, err := e.run(ctx, &o)
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("scale: %s: %w", e.name, err))
			continue
		}
		done = append(done, r)
	}
	return done, errors.Join(errs...)
}

func (e *experiment) run(ctx context.Context, o *Options) (Report, error) {
	a, b := o.A, o.B
	if e.sides != nil {
		a, b = e.sides(b)
	}
	r := newReport(e, o, a, b)
	for round := range o.Rounds {
		for side, server := range []load.Server{a, b} {
			if o.Progress != nil {
				o.Progress(e.name, server.DisplayName(), round+1)
			}
			t := &trial{Options: o, isA: side == 0, values: make(map[string]float64)}
			if err := t.run(ctx, e, server); err != nil {
				return r, fmt.Errorf("%s: %w", server.DisplayName(), err)
			}
			r.add(side, t.values)
		}
	}
	r.sum()
	return r, nil
}

// A trial is one run of an experiment on a server. Owned by its goroutine.
type trial struct {
	*Options
	*load.Process
	isA    bool
	gc     *gcTrace           // nil unless asked for
	values map[string]float64 // by the name of the figure
}

// run starts the server for the trial and stops it again.
func (t *trial) run(ctx context.Context, e *experiment, server load.Server) (err error) {
	if e.gctrace {
		t.gc = new(gcTrace)
		server.Env = append(slices.Clip(server.Env), gcTraceEnv)
		server.Output = t.gc
	}
	t.Process, err = server.Start(ctx)
	if err != nil {
		return err
	}
	defer t.Stop()
	if err := e.trial(ctx, t); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return errors.Join(err, t.Died())
	}
	return nil
}

// set gives a figure its value in this trial, in the figure's unit. A figure
// that a trial does not set is unknown in it.
func (t *trial) set(name string, value float64) { t.values[name] = value }

// setTime is set for a time.
func (t *trial) setTime(name string, d time.Duration) { t.set(name, float64(d)) }

// setRSS is set for the resident memory of the server now.
func (t *trial) setRSS(name string) (rss float64) {
	if u, ok := t.Usage(); ok {
		t.set(name, float64(u.RSS))
		return float64(u.RSS)
	}
	return 0
}

// jobs is the number of jobs asked for, or else n.
func (o *Options) jobs(n int64) int64 { return cmp.Or(o.Jobs, n) }

// interactive are the clients whose latency counts, for a while.
func (t *trial) interactive(ctx context.Context) (load.Result, error) {
	return load.Run(ctx, t.clients())
}

func (t *trial) clients() load.Options {
	return load.Options{Addr: t.Addr, PID: t.PID, Prefix: "interactive", Connections: interactiveClients, Duration: t.Duration}
}

const interactiveClients = 8

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

// errEnough ends what runs beside something that is over.
var errEnough = errors.New("enough")

// beside runs work while another function disturbs. The disturbance is ended
// when the work is done; when it fails before, so does the work.
func beside(ctx context.Context, disturb, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan error, 1)
	go func() {
		err := disturb(ctx)
		if err != nil {
			cancel(err) // too late if it was told to end
		}
		ended <- err
	}()
	err := work(ctx)
	cancel(errEnough)
	if failed := <-ended; failed != nil && !errors.Is(context.Cause(ctx), errEnough) {
		return failed
	}
	return err
}
