package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// CompareOptions describe a comparison of two servers under the same load.
type CompareOptions struct {
	// Name is what tables call the comparison. Empty means a description of the load.
	Name string

	// A is the server to compare with, B the one that is compared: ratios are B/A.
	A, B Server

	// Load is put on both. Addr and PID are filled in.
	Load Options

	// Baseline, if not nil, is a load that each server is compared with itself
	// under: Load without its crowd. BaselineName is what tables call it; empty
	// means a description.
	Baseline     *Options
	BaselineName string

	// Rounds is how often each server is run. 0 means 5.
	Rounds int

	// Responder, if it has a command, is a process that runs Responder. It is a
	// third side, which shows the ceiling of the generator under the same load.
	Responder Server

	// Progress, if not nil, is called after each run with the server's name.
	Progress func(server string, r Result)
}

const defaultRounds = 5

// A Comparison is what Compare found.
type Comparison struct {
	Name string  `json:"name"`
	Load Options `json:"load"`
	A    Side    `json:"a"`
	B    Side    `json:"b"`

	// Responder is nil if none was given. No server can make the generator measure
	// more on this machine, and what the responder costs per command is the part
	// of any server's cost that is system calls.
	Responder *Side `json:"responder,omitempty"`

	// ToA are the ratios B/A, ToResponder those of B to the responder.
	ToA         Ratios  `json:"b_to_a"`
	ToResponder *Ratios `json:"b_to_responder,omitempty"`

	// Targets are those of the suite, if it is part of one that has some.
	Targets []Target `json:"targets,omitempty"`

	// Baseline names the load of the sides' baselines; empty if there is none.
	Baseline     string   `json:"baseline,omitempty"`
	BaselineLoad *Options `json:"baseline_load,omitempty"`
}

// An entrant is what runs once in each round.
type entrant struct {
	name   string
	server Server
	load   Options
	runs   *[]Result
	side   *Side // which the runs are for
}

// Compare runs the load on each server in turn, responder A B responder A B ...,
// each time on a process started for that run, so that none profits from a
// quiet minute of the machine or inherits another run's memory. With a
// baseline, each run follows one of the baseline on the same server.
//
// A server that is too slow for the load's crowd is left out from then on and its
// Side says so; with any other error the comparison ends. All processes and their
// directories are gone when it returns, also when ctx is done.
func Compare(ctx context.Context, o CompareOptions) (Comparison, error) {
	c, err := o.comparison()
	if err != nil {
		return c, err
	}
	rounds := o.Rounds
	if rounds <= 0 {
		rounds = defaultRounds
	}
	all := o.entrants(&c)
	for range rounds {
		for i := range all {
			if err := all[i].run(ctx, o.Progress); err != nil {
				return c, fmt.Errorf("%s: %w", all[i].name, err)
			}
		}
	}
	c.sum()
	return c, nil
}

// comparison returns one without figures, for the options complete.
func (o *CompareOptions) comparison() (c Comparison, err error) {
	c = Comparison{Name: o.Name, A: Side{Name: o.A.DisplayName()}, B: Side{Name: o.B.DisplayName()}}
	if c.Load, err = o.Load.onAnyServer(); err != nil {
		return c, err
	}
	c.Name = cmp.Or(c.Name, c.Load.describe())
	if len(o.Responder.Command) > 0 {
		c.Responder = &Side{Name: o.Responder.DisplayName()}
	}
	if o.Baseline == nil {
		return c, nil
	}
	base, err := o.Baseline.onAnyServer()
	if err != nil {
		return c, fmt.Errorf("baseline: %w", err)
	}
	c.BaselineLoad = &base
	c.Baseline = cmp.Or(o.BaselineName, base.describe())
	return c, nil
}

// onAnyServer returns the options complete, and allows the files that a run
// takes while servers can still inherit that.
func (o Options) onAnyServer() (Options, error) {
	o, err := o.withDefaults()
	if err == nil {
		err = allowFiles(o.files())
	}
	o.Addr, o.PID = "", 0
	return o, err
}

// entrants returns a round.
func (o *CompareOptions) entrants(c *Comparison) []entrant {
	var all []entrant
	add := func(s *Side, server Server) {
		if o.Baseline != nil {
			s.Baseline = &Side{Name: s.Name}
			all = append(all, entrant{s.Name + ", baseline", server, *o.Baseline, &s.Baseline.Runs, s})
		}
		all = append(all, entrant{s.Name, server, o.Load, &s.Runs, s})
	}
	if c.Responder != nil {
		add(c.Responder, o.Responder)
	}
	add(&c.A, o.A)
	add(&c.B, o.B)
	return all
}

func (e *entrant) run(ctx context.Context, progress func(string, Result)) error {
	if e.side.LeftOut != "" {
		return nil
	}
	r, err := runOn(ctx, &e.server, e.load)
	switch {
	case errors.Is(err, ErrTooSlow):
		e.side.LeftOut = err.Error()
		return nil
	case err != nil:
		return err
	}
	*e.runs = append(*e.runs, r)
	if progress != nil {
		progress(e.name, r)
	}
	return nil
}

// runOn starts a server for one run.
func runOn(ctx context.Context, s *Server, o Options) (Result, error) {
	p, err := s.Start(ctx)
	if err != nil {
		return Result{}, err
	}
	defer p.Stop()
	o.Addr, o.PID = p.Addr, p.PID
	r, err := Run(ctx, o)
	if err != nil && ctx.Err() == nil {
		err = errors.Join(err, p.Died())
	}
	return r, err
}

func (c *Comparison) sum() {
	c.A.sum()
	c.B.sum()
	c.ToA = ratiosOf(c.B.Runs, c.A.Runs)
	if c.Responder != nil {
		c.Responder.sum()
		to := ratiosOf(c.B.Runs, c.Responder.Runs)
		c.ToResponder = &to
	}
}
