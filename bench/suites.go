package bench

import (
	"context"
	"fmt"
	"math"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// A row is a load, and what is asked of it.
type row struct {
	name  string
	load  load.Options
	goals []goal
}

// Suites are lists of experiments by name, each in the order in which they are run. Each load
// is measured for Options.Duration, or until its jobs are done.
var Suites = map[string]func(*Options) []Experiment{
	"memory":    func(o *Options) []Experiment { return suite(o, memoryRows, loadExperiment) },
	"journal":   func(o *Options) []Experiment { return suite(o, journalRows, loadExperiment) },
	"crowd":     func(o *Options) []Experiment { return suite(o, crowdRows, crowdExperiment) },
	"footprint": func(o *Options) []Experiment { return []Experiment{memory(o)} },
	"restart":   func(o *Options) []Experiment { return []Experiment{restart(o)} },
}

func suite(o *Options, rows []row, experiment func(row) Experiment) []Experiment {
	var all []Experiment
	for _, r := range rows {
		if r.load.Ops == 0 && r.load.Mix != load.Drain {
			r.load.Duration = o.Duration
		}
		all = append(all, experiment(r))
	}
	return all
}

// memoryRows are for servers that keep nothing on disk.
var memoryRows = []row{
	{"1 connection", load.Options{Connections: 1}, append([]goal{atLeast(1)}, noLatencyLost...)},
	{"8 connections", load.Options{Connections: 8}, append([]goal{ofResponder(throughput, 1), cpuOfResponder(1)}, ahead...)},
	{"50 connections", load.Options{Connections: 50}, ahead},
	{"500 connections", load.Options{Connections: 500}, ahead},
	{"8 connections, 64 in flight", load.Options{Connections: 8, InFlight: 64}, []goal{atLeast(20), ofResponder(throughput, 0.85), cpuOfResponder(1.2)}},
	{"50 connections, 1 KiB bodies", load.Options{Connections: 50, BodySize: 1 << 10}, []goal{atLeast(1.3)}},
	{"50 connections, 8 KiB bodies", load.Options{Connections: 50, BodySize: 8 << 10}, []goal{atLeast(1.3)}},
	// The largest job of a server is 65535 bytes unless it is told otherwise.
	{"50 connections, 63 KiB bodies", load.Options{Connections: 50, BodySize: 63 << 10}, []goal{atLeast(1.3)}},
	{"50 connections, 1,000,000 jobs in the queue", load.Options{Connections: 50, Backlog: 1_000_000}, nil},
	{"50 connections, put and delete", load.Options{Connections: 50, Mix: load.PutDelete}, nil},
	{"put 1,000,000 jobs", load.Options{Connections: 8, InFlight: 64, Mix: load.Put, Ops: 1_000_000}, bulkGoals},
	{"drain 1,000,000 jobs", load.Options{Connections: 8, InFlight: 64, Mix: load.Drain, Backlog: 1_000_000}, bulkGoals},
	{"wake 1 waiting worker", load.Options{Mix: load.Wake}, noLatencyLost},
	{"wake 50 workers that wait on one tube", load.Options{Connections: 50, Mix: load.Wake}, noLatencyLost},
}

// journalRows are for servers with a log. Whether they sync before each reply is
// in their command lines. Where each command changes something, put and delete,
// that is a sync before each reply; a reserve is not logged.
var journalRows = []row{
	{"1 connection, put and delete", load.Options{Connections: 1, Mix: load.PutDelete}, []goal{atLeast(1)}},
	{"8 connections, put and delete", load.Options{Connections: 8, Mix: load.PutDelete}, []goal{atLeast(4)}},
	{"64 connections, put and delete", load.Options{Connections: 64, Mix: load.PutDelete}, []goal{atLeast(10)}},
	{"500 connections, put and delete", load.Options{Connections: 500, Mix: load.PutDelete}, []goal{atLeast(12)}},
	{"64 connections, put, reserve and delete", load.Options{Connections: 64}, nil},
	{"8 connections, 64 in flight", load.Options{Connections: 8, InFlight: 64}, []goal{ofResponder(throughput, 0.5)}},
}

// crowdRows show what tubes, connections and workers cost that take no part in the load.
var crowdRows = []row{
	{"beside 1,000 tubes with a job in each", load.Options{Connections: 50, Occupied: 1_000}, []goal{unslowed}},
	{"beside 20,000 tubes with a job in each", load.Options{Connections: 50, Occupied: 20_000}, []goal{unslowed}},
	{"beside 100,000 tubes with a job in each", load.Options{Connections: 50, Occupied: 100_000}, []goal{unslowed}},
	{"beside 10,000 idle connections", load.Options{Connections: 50, Idle: 10_000}, []goal{unslowed, smallEach}},
	{"10,000 workers wait on one tube", load.Options{Connections: 50, Mix: load.Wake, Workers: 10_000}, []goal{unslowed, smallEach}},
}

// What is asked of loads.
var (
	ahead         = []goal{atLeast(1.3), atMost(cpuPerCommand, 0.8), cpuOfResponder(1.15), atMost(p99, 1.5)}
	bulkGoals     = []goal{ofResponder(throughput, 0.7), cpuOfResponder(1.7)}
	noLatencyLost = []goal{atMost(p50, 1), atMost(p99, 1)}
	unslowed      = goal{throughput + ofThatWithout, Target{Of: value, Limit: 0.9, AtLeast: true}}
	smallEach     = goal{memoryEach, Target{Of: value, Limit: 8 << 10}} // bytes
)

// atLeast asks for a multiple of A's throughput, or for 0.95 of the responder's: then the
// generator is the limit.
func atLeast(times float64) goal {
	return goal{throughput, Target{Of: toA, Limit: times, AtLeast: true, OrResponder: 0.95}}
}

// ofResponder asks for a part of what the responder does.
func ofResponder(figure string, part float64) goal {
	return goal{figure, Target{Of: toResponder, Limit: part, AtLeast: true}}
}

// cpuOfResponder asks for a CPU per command that is at most so many times the responder's.
func cpuOfResponder(times float64) goal {
	return goal{cpuPerCommand, Target{Of: toResponder, Limit: times}}
}

// atMost asks for a ratio to A that is not above a limit.
func atMost(figure string, times float64) goal {
	return goal{figure, Target{Of: toA, Limit: times}}
}

// Load is the experiment that runs a load. Addr and PID are filled in.
func Load(o load.Options) Experiment { return loadExperiment(row{name: o.Describe(), load: o}) }

func loadExperiment(r row) Experiment {
	return Experiment{
		Name:    r.name,
		goals:   r.goals,
		ceiling: true,
		trial: running(func(ctx context.Context, t *trial) error {
			_, err := t.load(ctx, r.load)
			return err
		}),
	}
}

// load runs a load on the server and sets the figures of loads.
func (t *trial) load(ctx context.Context, o load.Options) (load.Result, error) {
	r, err := t.run(ctx, o)
	if err != nil {
		return r, err
	}
	var server load.ServerUsage
	if r.Server != nil {
		server = *r.Server
	}
	t.set(throughput, load.PerSecond, r.Throughput)
	t.set(cpuPerCommand, load.Nanoseconds, known(server.CPUPerCommand)) // the kernel counts in steps: it may be 0
	t.setTime(p50, r.Latency.P50)
	t.setTime(p99, r.Latency.P99)
	t.setTime(p999, r.Latency.P999)
	t.set(peakRSS, load.Bytes, known(server.PeakRSS))
	return r, nil
}

// run runs a load on the server. At least one command must be answered.
func (t *trial) run(ctx context.Context, o load.Options) (load.Result, error) {
	o.Addr, o.PID = t.Addr, t.PID
	r, err := load.Run(ctx, o)
	if err == nil && r.Commands == 0 {
		err = fmt.Errorf("no command was answered in %v: a longer duration is needed", r.Elapsed)
	}
	return r, err
}

const (
	without       = " without"
	ofThatWithout = ", of that without"
	memoryEach    = "memory for each"
)

// crowdExperiment runs a load without its crowd and with it, each on a process of
// its own.
func crowdExperiment(r row) Experiment {
	single := r.load
	single.Occupied, single.Idle, single.Workers = 0, 0, 0
	e := loadExperiment(r)
	e.Title = single.Describe() + " without, and with them"
	e.trial = func(ctx context.Context, t *trial) error {
		var alone load.Result
		err := t.start(ctx, func(ctx context.Context) (err error) {
			alone, err = t.run(ctx, single)
			return err
		})
		if err != nil {
			return err
		}
		return t.start(ctx, func(ctx context.Context) error {
			crowded, err := t.load(ctx, r.load)
			if err != nil {
				return err
			}
			t.set(throughput+without, load.PerSecond, alone.Throughput)
			t.set(throughput+ofThatWithout, load.Times, crowded.Throughput/alone.Throughput)
			t.setTime(p99+without, alone.Latency.P99)
			t.set(p99+ofThatWithout, load.Times, float64(crowded.Latency.P99)/float64(alone.Latency.P99))
			each := math.NaN()
			if crowded.Crowd != nil {
				each = crowded.Crowd.RSSEach
			}
			t.set(memoryEach, load.Bytes, each)
			return nil
		})
	}
	return e
}
