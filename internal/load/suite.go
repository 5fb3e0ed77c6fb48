package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Scenario is one line of a suite: a load, and what the servers' command
// lines get besides.
type Scenario struct {
	Name         string
	Load         Options
	Against      *Scenario // the baseline, of which Name and Load count; nil for none
	ArgsA, ArgsB []string  // appended to the commands
	Goals        []Goal    // what is asked of B
}

// SuiteOptions describe a list of comparisons of the same two servers.
type SuiteOptions struct {
	A, B      Server
	Responder Server // see CompareOptions
	Scenarios []Scenario
	Rounds    int                                            // see CompareOptions
	Progress  func(scenario string, server string, r Result) // may be nil
}

// RunSuite compares A and B in each scenario. A scenario that fails does not
// keep the others from being run: its error is part of the one returned, and
// the comparisons returned are those that succeeded. When ctx is done it ends.
func RunSuite(ctx context.Context, o SuiteOptions) ([]Comparison, error) {
	var done []Comparison
	var errs []error
	for _, sc := range o.Scenarios {
		c, err := Compare(ctx, o.compareOptions(&sc))
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("scenario %q: %w", sc.Name, err))
			continue
		}
		for _, goal := range sc.Goals {
			c.Targets = append(c.Targets, goal(&c))
		}
		done = append(done, c)
	}
	return done, errors.Join(errs...)
}

func (o *SuiteOptions) compareOptions(sc *Scenario) CompareOptions {
	co := CompareOptions{
		Name:      sc.Name,
		A:         o.A.with(sc.ArgsA),
		B:         o.B.with(sc.ArgsB),
		Load:      sc.Load,
		Rounds:    o.Rounds,
		Responder: o.Responder,
	}
	if sc.Against != nil {
		co.Baseline, co.BaselineName = &sc.Against.Load, sc.Against.Name
	}
	if o.Progress != nil {
		co.Progress = func(server string, r Result) { o.Progress(sc.Name, server, r) }
	}
	return co
}

// with returns s with more arguments.
func (s Server) with(args []string) Server {
	s.Command = slices.Concat(s.Command, args)
	return s
}

// Suites are the loads of doc/benchmarks.md by name, each measured for d (0 means
// 5 s) or until its jobs are done.
var Suites = map[string]func(d time.Duration) []Scenario{
	"memory":  memorySuite,
	"journal": journalSuite,
	"crowd":   crowdSuite,
}

// A suite in the making.
type suite struct {
	d   time.Duration
	all []Scenario
}

func (s *suite) add(name string, o Options, goals ...Goal) {
	sc := s.scenario(name, o)
	sc.Goals = goals
	s.all = append(s.all, sc)
}

func (s *suite) addAgainst(baseline *Scenario, name string, o Options, goals ...Goal) {
	s.add(name, o, goals...)
	s.all[len(s.all)-1].Against = baseline
}

func (s *suite) scenario(name string, o Options) Scenario {
	if o.Ops == 0 && o.Mix != Drain {
		o.Duration = s.d
	}
	return Scenario{Name: name, Load: o}
}

// memorySuite is for servers that keep nothing on disk.
func memorySuite(d time.Duration) []Scenario {
	s := suite{d: d}
	notSlower := []Goal{atMost("p50", 1, p50Of), atMost("p99", 1, p99Of)}
	s.add("1 connection", Options{Connections: 1}, append(notSlower, atLeast(1))...)
	for _, n := range []int{8, 50, 500} {
		s.add(plural(n, "connection"), Options{Connections: n},
			atLeast(1.3), atMost("CPU per command", 0.8, cpuOf), leanAs(1.15), atMost("p99", 1.5, p99Of))
	}
	s.add("8 connections, 64 in flight", Options{Connections: 8, InFlight: 64}, atLeast(20))
	for _, n := range []int{1, 8, 63} { // the largest job of a server is 65535 bytes unless it is told otherwise
		s.add(fmt.Sprintf("50 connections, %d KiB bodies", n), Options{Connections: 50, BodySize: n << 10}, atLeast(1.3))
	}
	s.add("50 connections, 1,000,000 jobs behind", Options{Connections: 50, Backlog: 1_000_000})
	s.add("50 connections, put and delete", Options{Connections: 50, Mix: PutDelete})
	s.add("put 1,000,000 jobs", Options{Connections: 8, InFlight: 64, Mix: Put, Ops: 1_000_000})
	s.add("drain 1,000,000 jobs", Options{Connections: 8, InFlight: 64, Mix: Drain, Backlog: 1_000_000})
	s.add("wake 1 waiting worker", Options{Mix: Wake}, notSlower...)
	s.add("wake 50 waiting workers", Options{Connections: 50, Mix: Wake}, notSlower...)
	return s.all
}

// journalSuite is for servers with a log. Whether they sync before each reply is
// in their command lines. Where each command changes something, put and delete,
// that is a sync before each reply; a reserve is not logged.
func journalSuite(d time.Duration) []Scenario {
	s := suite{d: d}
	for _, c := range []struct {
		connections int
		asked       float64
	}{{1, 1}, {8, 4}, {64, 10}, {500, 12}} {
		s.add(plural(c.connections, "connection")+", put and delete", Options{Connections: c.connections, Mix: PutDelete}, atLeast(c.asked))
	}
	s.add("64 connections, put, reserve and delete", Options{Connections: 64})
	s.add("8 connections, 64 in flight", Options{Connections: 8, InFlight: 64})
	return s.all
}

// crowdSuite shows what those cost who take no part in the load.
func crowdSuite(d time.Duration) []Scenario {
	s := suite{d: d}
	busy := s.scenario("50 connections", Options{Connections: 50})
	for _, n := range []int{1_000, 20_000, 100_000} {
		s.addAgainst(&busy, "beside "+thousands(float64(n))+" tubes with a job in each", Options{Connections: 50, Occupied: n}, keeps(0.9))
	}
	s.addAgainst(&busy, "beside 10,000 idle connections", Options{Connections: 50, Idle: 10_000}, keeps(0.9), smallEach(8<<10))
	few := s.scenario("50 producers, 50 workers wait on one tube", Options{Mix: Wake, Connections: 50, Workers: 50})
	s.addAgainst(&few, "50 producers, 10,000 workers wait on one tube", Options{Mix: Wake, Connections: 50, Workers: 10_000}, keeps(0.9), smallEach(8<<10))
	return s.all
}
