package bench

import (
	"context"
	"fmt"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// A row is a load.
type row struct {
	name string
	load load.Options
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
	{"1 connection", load.Options{Connections: 1}},
	{"8 connections", load.Options{Connections: 8}},
	{"50 connections", load.Options{Connections: 50}},
	{"500 connections", load.Options{Connections: 500}},
	{"8 connections, 64 in flight", load.Options{Connections: 8, InFlight: 64}},
	{"50 connections, 1 KiB bodies", load.Options{Connections: 50, BodySize: 1 << 10}},
	{"50 connections, 8 KiB bodies", load.Options{Connections: 50, BodySize: 8 << 10}},
	// The largest job of a server is 65535 bytes unless it is told otherwise.
	{"50 connections, 63 KiB bodies", load.Options{Connections: 50, BodySize: 63 << 10}},
	{"50 connections, 1,000,000 jobs in the queue", load.Options{Connections: 50, Backlog: 1_000_000}},
	{"50 connections, put and delete", load.Options{Connections: 50, Mix: load.PutDelete}},
	{"put 1,000,000 jobs", load.Options{Connections: 8, InFlight: 64, Mix: load.Put, Ops: 1_000_000}},
	{"drain 1,000,000 jobs", load.Options{Connections: 8, InFlight: 64, Mix: load.Drain, Backlog: 1_000_000}},
	{"wake 1 waiting worker", load.Options{Mix: load.Wake}},
	{"wake 50 workers that wait on one tube", load.Options{Connections: 50, Mix: load.Wake}},
}

// journalRows are for servers with a log. Whether they sync before each reply is
// in their command lines. Where each command changes something, put and delete,
// that is a sync before each reply; a reserve is not logged.
var journalRows = []row{
	{"1 connection, put and delete", load.Options{Connections: 1, Mix: load.PutDelete}},
	{"8 connections, put and delete", load.Options{Connections: 8, Mix: load.PutDelete}},
	{"64 connections, put and delete", load.Options{Connections: 64, Mix: load.PutDelete}},
	{"500 connections, put and delete", load.Options{Connections: 500, Mix: load.PutDelete}},
	{"64 connections, put, reserve and delete", load.Options{Connections: 64}},
	{"8 connections, 64 in flight", load.Options{Connections: 8, InFlight: 64}},
}

// crowdRows show what tubes, connections and workers cost that take no part in the load.
var crowdRows = []row{
	{"beside 1,000 tubes with a job in each", load.Options{Connections: 50, Occupied: 1_000}},
	{"beside 20,000 tubes with a job in each", load.Options{Connections: 50, Occupied: 20_000}},
	{"beside 100,000 tubes with a job in each", load.Options{Connections: 50, Occupied: 100_000}},
	{"beside 10,000 idle connections", load.Options{Connections: 50, Idle: 10_000}},
	{"10,000 workers wait on one tube", load.Options{Connections: 50, Mix: load.Wake, Workers: 10_000}},
}

// Load is the experiment that runs a load. Addr and PID are filled in.
func Load(o load.Options) Experiment { return loadExperiment(row{name: o.Describe(), load: o}) }

func loadExperiment(r row) Experiment {
	return Experiment{
		Name:    r.name,
		ceiling: true,
		trial: func(ctx context.Context, t *trial) error {
			return t.start(ctx, func(ctx context.Context) error {
				_, err := t.load(ctx, r.load)
				return err
			})
		},
	}
}

// load runs a load on the server and sets the figures of loads.
func (t *trial) load(ctx context.Context, o load.Options) (load.Result, error) {
	r, err := t.run(ctx, o)
	if err != nil {
		return r, err
	}
	t.set(throughput, load.PerSecond, r.Throughput)
	t.set(cpuPerCommand, load.Nanoseconds, known(r.CPUPerCommand)) // the kernel counts in steps: it may be 0
	t.setTime(p50, r.Latency.P50)
	t.setTime(p99, r.Latency.P99)
	t.setTime(p999, r.Latency.P999)
	t.set(peakRSS, load.Bytes, known(r.PeakRSS))
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
			t.set(memoryEach, load.Bytes, crowded.EachRSS)
			return nil
		})
	}
	return e
}
