package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// CompareOptions describe a comparison of two servers under the same load.
type CompareOptions struct {
	// Name is what tables call the comparison. Empty means a description of the load.
	Name string

	// A is the server to compare with, B the one that is compared: ratios are B/A.
	A, B Server

	// Load is put on both. Addr and PID are filled in.
	Load Options

	// Rounds is how often each server is run, A and B in turn. 0 means 5.
	Rounds int

	// Responder, if it has a command, is a process that runs Responder; the
	// generator's ceiling under the same load is then measured first.
	Responder Server

	// Progress, if not nil, is called after each run with the server's name. The
	// ceiling's run is reported too.
	Progress func(server string, r Result)
}

const defaultRounds = 5

// A Comparison is what Compare found.
type Comparison struct {
	Name string  `json:"name"`
	Load Options `json:"load"`
	A    Side    `json:"a"`
	B    Side    `json:"b"`

	// Ratios B/A of the runs that followed each other. Above 1 is better for B
	// in Throughput, worse in the others.
	Throughput    Ratio `json:"throughput_ratio"`
	P50           Ratio `json:"p50_ratio"`
	P99           Ratio `json:"p99_ratio"`
	CPUPerCommand Ratio `json:"cpu_per_command_ratio"`

	// Ceiling is nil if no responder was given.
	Ceiling *Result `json:"ceiling,omitempty"`
}

// A Side is all runs of one server, and their medians.
type Side struct {
	Name string   `json:"name"`
	Runs []Result `json:"runs"`

	Throughput    float64       `json:"commands_per_second"`
	P50           time.Duration `json:"p50_ns"`
	P99           time.Duration `json:"p99_ns"`
	CPUPerCommand time.Duration `json:"cpu_per_command_ns"` // 0 if unknown
	PeakRSS       int64         `json:"peak_rss_bytes"`     // 0 if unknown
}

// A Ratio is the ratio of each pair of runs, summed up. It is zero if there was
// nothing to divide by.
type Ratio struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Compare runs the load on A and B in turn, A B A B ..., each time on a process
// started for that run, so that neither profits from a quiet minute of the
// machine or inherits the other run's memory. Both processes and
// their directories are gone when it returns, also when ctx is done.
func Compare(ctx context.Context, o CompareOptions) (Comparison, error) {
	c := Comparison{Name: o.Name, A: Side{Name: o.A.name()}, B: Side{Name: o.B.name()}}
	report := o.Progress
	if report == nil {
		report = func(string, Result) {}
	}
	var err error
	if c.Load, err = o.Load.withDefaults(); err != nil {
		return c, err
	}
	c.Load.Addr, c.Load.PID = "", 0
	c.Name = cmp.Or(c.Name, c.Load.describe())
	if len(o.Responder.Command) > 0 {
		r, err := Ceiling(ctx, o.Load, o.Responder)
		if err != nil {
			return c, err
		}
		report("ceiling", r)
		c.Ceiling = &r
	}
	rounds := o.Rounds
	if rounds <= 0 {
		rounds = defaultRounds
	}
	for range rounds {
		for _, turn := range []struct {
			server *Server
			side   *Side
		}{{&o.A, &c.A}, {&o.B, &c.B}} {
			r, err := runOn(ctx, turn.server, o.Load)
			if err != nil {
				return c, fmt.Errorf("%s: %w", turn.side.Name, err)
			}
			turn.side.Runs = append(turn.side.Runs, r)
			report(turn.side.Name, r)
		}
	}
	c.sum()
	return c, nil
}

// Ceiling runs the load on a process that runs Responder. No server can make
// the generator measure more on this machine than that, and what the responder
// costs per command is the part of any server's cost that is system calls.
func Ceiling(ctx context.Context, o Options, responder Server) (Result, error) {
	r, err := runOn(ctx, &responder, o)
	if err != nil {
		return r, fmt.Errorf("ceiling: %w", err)
	}
	return r, nil
}

// runOn starts a server for one run.
func runOn(ctx context.Context, s *Server, o Options) (Result, error) {
	p, err := s.start(ctx)
	if err != nil {
		return Result{}, err
	}
	defer p.stop()
	o.Addr, o.PID = p.addr, p.pid
	r, err := Run(ctx, o)
	if err != nil && ctx.Err() == nil {
		err = errors.Join(err, p.death())
	}
	return r, err
}

// death returns what the process died of, or nil if it lives.
func (p *process) death() error {
	select {
	case <-p.exited:
		return fmt.Errorf("the server is gone: %v%s", p.err, p.output.quoted())
	default:
		return nil
	}
}

func (c *Comparison) sum() {
	c.A.sum()
	c.B.sum()
	c.Throughput = c.ratio(func(r *Result) float64 { return r.Throughput })
	c.P50 = c.ratio(func(r *Result) float64 { return float64(r.Latency.P50) })
	c.P99 = c.ratio(func(r *Result) float64 { return float64(r.Latency.P99) })
	c.CPUPerCommand = c.ratio(func(r *Result) float64 { return float64(cpuPerCommand(r)) })
}

func (s *Side) sum() {
	s.Throughput = medianOf(s.Runs, func(r *Result) float64 { return r.Throughput })
	s.P50 = medianOf(s.Runs, func(r *Result) time.Duration { return r.Latency.P50 })
	s.P99 = medianOf(s.Runs, func(r *Result) time.Duration { return r.Latency.P99 })
	s.CPUPerCommand = medianOf(s.Runs, cpuPerCommand)
	s.PeakRSS = medianOf(s.Runs, func(r *Result) int64 {
		if r.Server == nil {
			return 0
		}
		return r.Server.PeakRSS
	})
}

func cpuPerCommand(r *Result) time.Duration {
	if r.Server == nil {
		return 0
	}
	return r.Server.CPUPerCommand
}

// ratio divides the figure of each run of B by that of the run of A before it.
func (c *Comparison) ratio(figure func(*Result) float64) Ratio {
	var all []float64
	for i := range min(len(c.A.Runs), len(c.B.Runs)) {
		if a := figure(&c.A.Runs[i]); a > 0 {
			all = append(all, figure(&c.B.Runs[i])/a)
		}
	}
	return ratioOf(all)
}

// ratioOf sums ratios up.
func ratioOf(all []float64) Ratio {
	if len(all) == 0 {
		return Ratio{}
	}
	return Ratio{Median: median(all), Min: slices.Min(all), Max: slices.Max(all)}
}

func medianOf[T ~int64 | ~float64](runs []Result, figure func(*Result) T) T {
	all := make([]T, len(runs))
	for i := range runs {
		all[i] = figure(&runs[i])
	}
	return median(all)
}

// median returns the middle of all, or the mean of the two in the middle, or 0.
func median[T ~int64 | ~float64](all []T) T {
	all = slices.Sorted(slices.Values(all))
	n := len(all)
	if n == 0 {
		return 0
	}
	return (all[(n-1)/2] + all[n/2]) / 2
}
