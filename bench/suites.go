package bench

import (
	"context"
	"fmt"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// A row is a load with its name.
type row struct {
	name string
	load load.Options
}

// Suites contains the lists of experiments by name. They run in the order of a list. Each
// load is measured for Options.Duration, or until its jobs are done.
var Suites = map[string]func(*Options) []Experiment{
	"memory":    func(o *Options) []Experiment { return suite(o, "Memory", memoryRows) },
	"journal":   func(o *Options) []Experiment { return suite(o, "Journal", journalRows) },
	"crowd":     func(o *Options) []Experiment { return suite(o, "Crowd", crowdRows) },
	"footprint": func(o *Options) []Experiment { return []Experiment{memory(o)} },
	"restart":   func(o *Options) []Experiment { return []Experiment{restart(o)} },
}

func suite(o *Options, name string, rows []row) []Experiment {
	var all []Experiment
	for _, r := range rows {
		if r.load.Ops == 0 && r.load.Mix != load.Drain {
			r.load.Duration = o.Duration
		}
		r.name = name + "/" + r.name
		all = append(all, loadExperiment(r))
	}
	return all
}

// memoryRows contains loads for servers without a log.
var memoryRows = []row{
	{"1 connection", load.Options{Connections: 1}},
	{"8 connections", load.Options{Connections: 8}},
	{"50 connections", load.Options{Connections: 50}},
	{"500 connections", load.Options{Connections: 500}},
	{"8 connections, 64 in flight", load.Options{Connections: 8, InFlight: 64}},
	{"50 connections, 1 KiB bodies", load.Options{Connections: 50, BodySize: 1 << 10}},
	{"50 connections, 8 KiB bodies", load.Options{Connections: 50, BodySize: 8 << 10}},
	// The default maximum job size is 65535 bytes.
	{"50 connections, 63 KiB bodies", load.Options{Connections: 50, BodySize: 63 << 10}},
	{"50 connections, 1,000,000 jobs in the queue", load.Options{Connections: 50, Backlog: 1_000_000}},
	{"50 connections, put and delete", load.Options{Connections: 50, Mix: load.PutDelete}},
	{"put 1,000,000 jobs", load.Options{Connections: 8, InFlight: 64, Mix: load.Put, Ops: 1_000_000}},
	{"drain 1,000,000 jobs", load.Options{Connections: 8, InFlight: 64, Mix: load.Drain, Backlog: 1_000_000}},
}

// journalRows contains loads for servers with a log. Their command lines determine
// whether they sync before each reply. If each command makes a change, as put and delete
// do, each command needs a sync; a reserve is not logged.
var journalRows = []row{
	{"1 connection, put and delete", load.Options{Connections: 1, Mix: load.PutDelete}},
	{"8 connections, put and delete", load.Options{Connections: 8, Mix: load.PutDelete}},
	{"64 connections, put and delete", load.Options{Connections: 64, Mix: load.PutDelete}},
	{"500 connections, put and delete", load.Options{Connections: 500, Mix: load.PutDelete}},
	{"64 connections, put, reserve and delete", load.Options{Connections: 64}},
	{"8 connections, 64 in flight", load.Options{Connections: 8, InFlight: 64}},
}

// crowdRows measures the cost of tubes and connections that take no part in the load.
var crowdRows = []row{
	{"50 connections", load.Options{Connections: 50}},
	{"beside 1,000 tubes with a job in each", load.Options{Connections: 50, Occupied: 1_000}},
	{"beside 20,000 tubes with a job in each", load.Options{Connections: 50, Occupied: 20_000}},
	{"beside 100,000 tubes with a job in each", load.Options{Connections: 50, Occupied: 100_000}},
	{"beside 10,000 idle connections", load.Options{Connections: 50, Idle: 10_000}},
}

// Load returns an experiment that runs a load. It sets Addr and PID.
func Load(o load.Options) Experiment {
	return loadExperiment(row{name: "Load/" + o.Describe(), load: o})
}

func loadExperiment(r row) Experiment {
	return Experiment{
		Name:    r.name,
		ceiling: true,
		trial: func(ctx context.Context, t *trial) error {
			return t.start(ctx, func(ctx context.Context) error {
				return t.load(ctx, r.load)
			})
		},
	}
}

// load runs a load on the server and adds its measurements. It fails if no command was
// answered.
func (t *trial) load(ctx context.Context, o load.Options) error {
	o.Addr, o.PID = t.Addr, t.PID
	r, err := load.Run(ctx, o)
	if err == nil && r.Commands == 0 {
		err = fmt.Errorf("no command was answered in %v: a longer duration is needed", r.Elapsed)
	}
	if err != nil {
		return err
	}
	t.set(r.Throughput, "cmds/s")
	t.set(float64(r.CPUPerCommand), "cpu-ns/cmd")
	t.set(float64(r.Latency.P50), "p50-ns")
	t.set(float64(r.Latency.P99), "p99-ns")
	t.set(float64(r.Latency.P999), "p99.9-ns")
	t.set(float64(r.PeakRSS), "peak-RSS-bytes")
	return nil
}
