package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// Options selects the servers and the size of the experiments.
type Options struct {
	// A is the reference. B is the server to compare with it.
	A, B Server

	// Responder, if it has a command, is a process that runs load.Responder. It is also
	// measured.
	Responder Server

	// Rounds is the number of runs of each experiment on each server.
	Rounds int

	// Duration is the measured time of each load.
	Duration time.Duration

	// Jobs is the number of jobs in footprint and restart. Zero means 2,000,000 and
	// 1,000,000.
	Jobs int64

	// Settle is the time for a server to release memory in footprint.
	Settle time.Duration

	// Progress, if not nil, is called before each trial.
	Progress func(experiment, server string, round int)
}

// jobs returns Jobs, or n if it is zero.
func (o *Options) jobs(n int64) int64 { return cmp.Or(o.Jobs, n) }

// An Experiment runs on each server in each round.
type Experiment struct {
	Name string // suite and load, as in "Memory/8 connections"

	ceiling bool // whether the responder can also answer it

	// trial starts one server and measures it.
	trial func(context.Context, *trial) error
}

// Run runs the experiments, and writes a Go benchmark result for each trial. If an
// experiment fails, the others still run, and the returned error contains its error. Run
// ends when ctx ends. It leaves no processes or directories behind.
//
// If a server is too slow for an experiment, Run omits it from the remaining rounds of
// that experiment, and writes a line with the reason.
func Run(ctx context.Context, o Options, w io.Writer, experiments []Experiment) error {
	if err := inheritFiles(); err != nil {
		return err
	}
	WriteConfiguration(w)
	var errs []error
	for i := range experiments {
		e := &experiments[i]
		err := e.run(ctx, &o, w)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			errs = append(errs, fmt.Errorf("bench: %s: %w", e.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (e *Experiment) run(ctx context.Context, o *Options, w io.Writer) error {
	servers := []Server{o.A, o.B}
	if e.ceiling && len(o.Responder.Command) > 0 {
		servers = append(servers, o.Responder)
	}
	leftOut := make([]bool, len(servers))
	for round := range o.Rounds {
		for i, s := range servers {
			if leftOut[i] {
				continue
			}
			if o.Progress != nil {
				o.Progress(e.Name, s.DisplayName(), round+1)
			}
			t := &trial{Options: o, server: s}
			switch err := e.trial(ctx, t); {
			case errors.Is(err, load.ErrTooSlow):
				leftOut[i] = true
				fmt.Fprintf(w, "# %s: %s is left out: %v\n", e.Name, s.DisplayName(), err)
			case err != nil:
				return fmt.Errorf("%s: %w", s.DisplayName(), err)
			default:
				WriteResult(w, e.Name+"/server="+s.DisplayName(), t.measured)
			}
		}
	}
	return nil
}
