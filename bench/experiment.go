package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// Options say which servers are to be measured, and how large the experiments
// are.
type Options struct {
	// A is the server to compare with, B the one that is compared: ratios are B/A.
	A, B Server

	// Responder, if it has a command, is a process that runs load.Responder. Loads
	// are run on it too.
	Responder Server

	// Rounds is how often each experiment is run on each server.
	Rounds int

	// Duration is how long each load is measured.
	Duration time.Duration

	// Jobs is the number of jobs in footprint and restart. 0 means 2,000,000 and 1,000,000.
	Jobs int64

	// Settle is how long a server has time in footprint to give memory back.
	Settle time.Duration

	// Progress, if not nil, is called before each trial.
	Progress func(experiment, server string, round int)
}

// jobs is the number of jobs asked for, or else n.
func (o *Options) jobs(n int64) int64 { return cmp.Or(o.Jobs, n) }

// An Experiment is run on each server in each round.
type Experiment struct {
	Name  string
	Title string // for the heading of its table; empty: it is a row of the tables of loads

	ceiling bool // the responder can answer it too

	// trial measures figures on one server, which it starts.
	trial func(context.Context, *trial) error
}

// Run runs the experiments. If one fails the others are run all the same: its error is
// part of the one returned, and the reports are those of the experiments that succeeded.
// Run ends when ctx is done. It leaves no process and no directory.
//
// A server that is too slow for an experiment is left out of its other rounds, and the
// report says so.
func Run(ctx context.Context, o Options, experiments []Experiment) ([]Report, error) {
	if err := inheritFiles(); err != nil {
		return nil, err
	}
	var done []Report
	var errs []error
	for i := range experiments {
		e := &experiments[i]
		r, err := e.run(ctx, &o)
		switch {
		case ctx.Err() != nil:
			return done, context.Cause(ctx)
		case err != nil:
			errs = append(errs, fmt.Errorf("bench: %s: %w", e.Name, err))
		default:
			done = append(done, r)
		}
	}
	return done, errors.Join(errs...)
}

func (e *Experiment) run(ctx context.Context, o *Options) (Report, error) {
	r := Report{Name: e.Name, Title: e.Title, rounds: o.Rounds}
	servers := [numSides]Server{sideA: o.A, sideB: o.B, sideResponder: o.Responder}
	order := []int{sideA, sideB}
	if e.ceiling && len(o.Responder.Command) > 0 {
		order = []int{sideResponder, sideA, sideB}
	}
	for _, side := range order {
		r.Servers[side] = servers[side].DisplayName()
	}
	for round := range o.Rounds {
		for _, side := range order {
			if r.LeftOut[side] != "" {
				continue
			}
			if o.Progress != nil {
				o.Progress(e.Name, r.Servers[side], round+1)
			}
			measured, err := e.try(ctx, o, servers[side], side)
			switch {
			case errors.Is(err, load.ErrTooSlow):
				r.LeftOut[side] = err.Error()
			case err != nil:
				return r, fmt.Errorf("%s: %w", r.Servers[side], err)
			}
			r.add(side, round, measured)
		}
	}
	r.sum()
	return r, nil
}

// try runs a trial, and returns what it measured, which is nothing after an error.
func (e *Experiment) try(ctx context.Context, o *Options, s Server, side int) ([]measurement, error) {
	t := &trial{Options: o, server: s, isA: side == sideA}
	if err := e.trial(ctx, t); err != nil {
		return nil, err
	}
	return t.measured, nil
}
