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

	// Tubes is the number of tubes in observers and expensive. 0 means 30,000 in
	// expensive and 100,000 in observers, but 10,000 there for A: to beanstalkd,
	// each additional tube costs a look at all others.
	Tubes int

	// Settle is how long a server has time to give memory back. 0 means 15 s.
	Settle time.Duration

	// Progress, if not nil, is called before each trial.
	Progress func(experiment, server string, round int)
}

// An Experiment is run on each server in each round.
type Experiment struct {
	Name  string
	Title string // what it measures, for the heading of its table; may be empty

	figures []Figure // without values
	trial   func(context.Context, *trial) error
	cold    bool // the trial starts the server itself, maybe more than once
	gctrace bool // the trial wants to know about the server's garbage collector
	ceiling bool // the responder can answer it too
	row     bool // see Report

	servers []Server // instead of Options.A and B
}

// maxCrashes is how often A may crash in an experiment. beanstalkd 1.12 does in one of
// ten trials of expensive.
const maxCrashes = 5

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
var Experiments = []func(*Options) Experiment{memory, backlog, due, fairness, observers, expensive, cores}

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

// Run runs the experiments. If one fails the others are run all the same: its error is
// part of the one returned, and the reports are those of the experiments that succeeded.
// Run ends when ctx is done. It leaves no process and no directory.
//
// A server that is too slow for an experiment is left out of its other rounds, and the
// report says so. If A crashes its trial is repeated, and the report says how often that
// was; if B does the experiment fails.
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
			err := t.run(ctx, e)
			for i == sideA && errors.Is(err, errDied) && r.Crashes < maxCrashes {
				r.Crashes++
				clear(t.values)
				err = t.run(ctx, e)
			}
			switch {
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
