package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/load"
)

// A goal is a target for a figure of a load.
type goal struct {
	figure string
	Target
}

// atLeast asks for a multiple of A's throughput, or for 0.95 of the responder's: then the
// generator is the limit.
func atLeast(times float64) goal {
	return goal{throughput, Target{Of: toA, Limit: times, AtLeast: true, OrResponder: 0.95}}
}

// atMost asks for a ratio to A that is not above a limit.
func atMost(figure string, times float64) goal {
	return goal{figure, Target{Of: toA, Limit: times}}
}

// Load is the experiment that runs a load. Addr and PID are filled in.
func Load(o load.Options) Experiment { return loadExperiment(o.Describe(), o) }

func loadExperiment(name string, o load.Options, goals ...goal) Experiment {
	e := Experiment{
		Name: name,
		figures: []Figure{
			{Name: throughput, Unit: PerSecond},
			{Name: cpuPerCommand, Unit: Nanoseconds},
			{Name: p50, Unit: Nanoseconds},
			{Name: p99, Unit: Nanoseconds},
			{Name: p999, Unit: Nanoseconds},
			{Name: peakRSS, Unit: Bytes},
		},
		ceiling: true,
		row:     true,
		trial: func(ctx context.Context, t *trial) error {
			_, err := t.load(ctx, o)
			return err
		},
	}
	e.addTargets(goals)
	return e
}

func (e *Experiment) addTargets(goals []goal) {
	for _, g := range goals {
		i := slices.IndexFunc(e.figures, func(f Figure) bool { return f.Name == g.figure })
		e.figures[i].Targets = append(e.figures[i].Targets, g.Target)
	}
}

// load runs a load on the server and sets the figures of loads.
func (t *trial) load(ctx context.Context, o load.Options) (load.Result, error) {
	o.Addr, o.PID = t.Addr, t.PID
	r, err := load.Run(ctx, o)
	if err != nil {
		return r, err
	}
	if s := r.Server; s != nil {
		t.set(peakRSS, float64(s.PeakRSS))
		if s.CPUPerCommand > 0 { // the kernel counts in steps
			t.setTime(cpuPerCommand, s.CPUPerCommand)
		}
	}
	if r.Commands == 0 {
		return r, fmt.Errorf("no command was answered in %v: a longer duration is needed", r.Elapsed)
	}
	t.set(throughput, r.Throughput)
	t.setTime(p50, r.Latency.P50)
	t.setTime(p99, r.Latency.P99)
	t.setTime(p999, r.Latency.P999)
	return r, nil
}

const (
	alone      = " without"
	ofAlone    = ", of that without"
	memoryEach = "memory for each"
)

// crowdExperiment runs a load without its crowd and with it, each on a process of
// its own.
func crowdExperiment(name string, single, crowded load.Options, goals ...goal) Experiment {
	e := loadExperiment(name, crowded)
	e.cold, e.row = true, false
	e.Title = single.Describe() + " without, and with them"
	e.figures = append(e.figures,
		Figure{Name: throughput + alone, Unit: PerSecond},
		Figure{Name: throughput + ofAlone, Unit: Times},
		Figure{Name: p99 + alone, Unit: Nanoseconds},
		Figure{Name: p99 + ofAlone, Unit: Times},
		Figure{Name: memoryEach, Unit: Bytes})
	e.addTargets(goals)
	e.trial = func(ctx context.Context, t *trial) error {
		var base load.Result
		err := t.start(ctx, func() (err error) {
			base, err = t.load(ctx, single)
			return err
		})
		if err != nil {
			return err
		}
		return t.start(ctx, func() error {
			r, err := t.load(ctx, crowded)
			if err != nil {
				return err
			}
			t.set(throughput+alone, base.Throughput)
			t.set(throughput+ofAlone, r.Throughput/base.Throughput)
			t.setTime(p99+alone, base.Latency.P99)
			t.set(p99+ofAlone, float64(r.Latency.P99)/float64(base.Latency.P99))
			if r.Crowd != nil {
				t.set(memoryEach, r.Crowd.RSSEach)
			}
			return nil
		})
	}
	return e
}

// Suites are lists of loads by name. Each is measured for Options.Duration, or
// until its jobs are done.
var Suites = map[string]func(*Options) []Experiment{
	"memory":  memorySuite,
	"journal": journalSuite,
	"crowd":   crowdSuite,
}

// A suite in the making.
type suite struct {
	*Options
	all []Experiment
}

func (s *suite) add(name string, o load.Options, goals ...goal) {
	s.all = append(s.all, loadExperiment(name, s.timed(o), goals...))
}

func (s *suite) timed(o load.Options) load.Options {
	if o.Ops == 0 && o.Mix != load.Drain {
		o.Duration = s.Duration
	}
	return o
}

// memorySuite is for servers that keep nothing on disk.
func memorySuite(o *Options) []Experiment {
	s := suite{Options: o}
	notSlower := []goal{atMost(p50, 1), atMost(p99, 1)}
	s.add("1 connection", load.Options{Connections: 1}, append(notSlower, atLeast(1))...)
	for _, n := range []int{8, 50, 500} {
		s.add(plural(n, "connection"), load.Options{Connections: n},
			atLeast(1.3), atMost(cpuPerCommand, 0.8), atMost(p99, 1.5), goal{cpuPerCommand, Target{Of: toResponder, Limit: 1.15}})
	}
	s.add("8 connections, 64 in flight", load.Options{Connections: 8, InFlight: 64}, atLeast(20))
	for _, n := range []int{1, 8, 63} { // the largest job of a server is 65535 bytes unless it is told otherwise
		s.add(fmt.Sprintf("50 connections, %d KiB bodies", n), load.Options{Connections: 50, BodySize: n << 10}, atLeast(1.3))
	}
	s.add("50 connections, 1,000,000 jobs behind", load.Options{Connections: 50, Backlog: 1_000_000})
	s.add("50 connections, put and delete", load.Options{Connections: 50, Mix: load.PutDelete})
	s.add("put 1,000,000 jobs", load.Options{Connections: 8, InFlight: 64, Mix: load.Put, Ops: 1_000_000})
	s.add("drain 1,000,000 jobs", load.Options{Connections: 8, InFlight: 64, Mix: load.Drain, Backlog: 1_000_000})
	s.add("wake 1 waiting worker", load.Options{Mix: load.Wake}, notSlower...)
	s.add("wake 50 waiting workers", load.Options{Connections: 50, Mix: load.Wake}, notSlower...)
	return s.all
}

// journalSuite is for servers with a log. Whether they sync before each reply is
// in their command lines. Where each command changes something, put and delete,
// that is a sync before each reply; a reserve is not logged.
func journalSuite(o *Options) []Experiment {
	s := suite{Options: o}
	for _, c := range []struct {
		connections int
		asked       float64
	}{{1, 1}, {8, 4}, {64, 10}, {500, 12}} {
		s.add(plural(c.connections, "connection")+", put and delete", load.Options{Connections: c.connections, Mix: load.PutDelete}, atLeast(c.asked))
	}
	s.add("64 connections, put, reserve and delete", load.Options{Connections: 64})
	s.add("8 connections, 64 in flight", load.Options{Connections: 8, InFlight: 64})
	return s.all
}

// crowdSuite shows what tubes, connections and workers cost that take no part in the
// load.
func crowdSuite(o *Options) []Experiment {
	s := suite{Options: o}
	keeps := goal{throughput + ofAlone, Target{Of: value, Limit: 0.9, AtLeast: true}}
	small := goal{memoryEach, Target{Of: value, Limit: 8 << 10}}
	add := func(name string, alone, crowded load.Options, goals ...goal) {
		s.all = append(s.all, crowdExperiment(name, s.timed(alone), s.timed(crowded), goals...))
	}
	busy := load.Options{Connections: 50}
	for _, n := range []int{1_000, 20_000, 100_000} {
		add("beside "+count(n)+" tubes with a job in each", busy, load.Options{Connections: 50, Occupied: n}, keeps)
	}
	add("beside 10,000 idle connections", busy, load.Options{Connections: 50, Idle: 10_000}, keeps, small)
	few := load.Options{Mix: load.Wake, Connections: 50, Workers: 50}
	add("10,000 workers wait on one tube", few, load.Options{Mix: load.Wake, Connections: 50, Workers: 10_000}, keeps, small)
	return s.all
}
