// Command plot draws the charts of doc/benchmarks.md from Go benchmark results.
//
//	plot RESULTS CHARTS
//
// It reads the files NAME.txt in the first directory and writes NAME.svg to the second.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: plot RESULTS CHARTS")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

// run draws all charts.
func run(from, to string) error {
	for _, p := range plots {
		c, err := p.chart(from)
		if err == nil {
			err = c.draw(filepath.Join(to, p.name+".svg"))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// A plot is a chart of measurements.
type plot struct {
	name, title, better string
	kinds               []kind
	figures             []figure
}

// A figure is a group of bars: the servers of a benchmark in a file.
type figure struct{ file, benchmark, unit, label string }

const (
	moreIsBetter = "longer is better, × to beanstalkd"
	lessIsBetter = "shorter is better, × to beanstalkd"
)

var servers = []kind{{Class: "them", server: "beanstalkd"}, {Class: "us", server: "beanpole"}, {Class: "ceiling", server: "responder", Name: "a server that only answers"}}

var plots = []plot{
	{"throughput", "Commands per second, one at a time on each connection", moreIsBetter, servers, []figure{
		{"memory", "Memory/1 connection", "cmds/s", "1 connection"},
		{"memory", "Memory/8 connections", "cmds/s", "8 connections"},
		{"memory", "Memory/50 connections", "cmds/s", "50 connections"},
		{"memory", "Memory/500 connections", "cmds/s", "500 connections"},
		{"memory", "Memory/50 connections, 8 KiB bodies", "cmds/s", "50, bodies of 8 KiB"},
		{"memory", "Memory/50 connections, 1,000,000 jobs in the queue", "cmds/s", "50, a million jobs wait"}}},
	{"pipelined", "Commands per second, many before the first reply", moreIsBetter, servers, []figure{
		{"memory", "Memory/8 connections, 64 in flight", "cmds/s", "put, reserve, delete"},
		{"memory", "Memory/put 1,000,000 jobs", "cmds/s", "put a million jobs"},
		{"memory", "Memory/drain 1,000,000 jobs", "cmds/s", "drain a million jobs"},
		{"journal", "Journal/8 connections, 64 in flight", "cmds/s", "the same, with syncs"}}},
	{"sync", "Commands per second, with a sync to disk before each reply", moreIsBetter, servers, []figure{
		{"journal", "Journal/1 connection, put and delete", "cmds/s", "1 connection"},
		{"journal", "Journal/8 connections, put and delete", "cmds/s", "8 connections"},
		{"journal", "Journal/64 connections, put and delete", "cmds/s", "64 connections"},
		{"journal", "Journal/500 connections, put and delete", "cmds/s", "500 connections"}}},
	{"crowd", "Commands per second of 50 connections, beside others that do nothing", moreIsBetter, servers, []figure{
		{"crowd", "Crowd/beside 1,000 tubes with a job in each", "cmds/s", "1,000 tubes"},
		{"crowd", "Crowd/beside 20,000 tubes with a job in each", "cmds/s", "20,000 tubes"},
		{"crowd", "Crowd/beside 100,000 tubes with a job in each", "cmds/s", "100,000 tubes"},
		{"crowd", "Crowd/beside 10,000 idle connections", "cmds/s", "10,000 idle connections"}}},
	{"memory", "Memory of a job with a body of 64 bytes", lessIsBetter, servers[:2], []figure{
		{"footprint", "Footprint/2000000 jobs", "bytes/job", "ready"},
		{"footprint", "Footprint/2000000 jobs", "bytes/delayed-job", "delayed"},
		{"footprint", "Footprint/2000000 jobs", "bytes/buried-job", "buried"},
		{"footprint-journal", "Footprint/2000000 jobs", "bytes/job", "ready, with a journal"},
		{"footprint-journal", "Footprint/2000000 jobs", "bytes/delayed-job", "delayed, with a journal"},
		{"footprint-journal", "Footprint/2000000 jobs", "bytes/buried-job", "buried, with a journal"}}},
	{"restart", "From a crash to the first reply", lessIsBetter, servers[:2], []figure{
		{"restart", "Restart/1000000 jobs", "reply-ns", "1,000,000 jobs"},
		{"restart-large", "Restart/5000000 jobs", "reply-ns", "5,000,000 jobs"}}},
	{"cluster", "Puts per second, acknowledged when they are on the disks of a majority", "longer is better, × to JetStream",
		[]kind{{Class: "them", server: "JetStream, 3 replicas, sync always"}, {Class: "us", server: "cluster of three, at the leader"},
			{Class: "more", server: "cluster of three, at a follower"}, {Class: "ceiling", server: "single server, sync before each reply"}},
		[]figure{{"cluster", "Cluster/1 client", "puts/s", "1 client"}, {"cluster", "Cluster/64 clients", "puts/s", "64 clients"}, {"cluster", "Cluster/500 clients", "puts/s", "500 clients"}}},
}

// chart reads the figures of a chart. It omits figures that were not measured.
func (p *plot) chart(dir string) (*chart, error) {
	c := &chart{Title: p.title, Better: p.better, Kinds: slices.Clone(p.kinds)}
	for i := range c.Kinds {
		if k := &c.Kinds[i]; k.Name == "" {
			k.Name = k.server
		}
	}
	for _, f := range p.figures {
		values, machine, err := read(filepath.Join(dir, f.file+".txt"), f.benchmark, f.unit)
		if err != nil {
			return nil, err
		}
		if c.Machine = machine; len(values) == 0 {
			continue
		}
		c.unit = f.unit
		g := group{Label: f.label, Bars: make([]bar, len(c.Kinds))}
		for i, k := range c.Kinds {
			g.Bars[i].of = newSpread(values[strings.ReplaceAll(k.server, " ", "_")])
			if theirs := g.Bars[0].of.median; i > 0 && theirs > 0 && k.Class != "ceiling" {
				g.Bars[i].ratio = g.Bars[i].of.median / theirs
			}
		}
		c.Groups = append(c.Groups, g)
	}
	return c, nil
}

// read returns the values of a benchmark in a unit, by server, and a description of the
// machine.
func read(file, benchmark, unit string) (values map[string][]float64, machine string, err error) {
	text, err := os.ReadFile(file) // a file in the directory that the user has named
	values = make(map[string][]float64)
	prefix := "Benchmark" + strings.ReplaceAll(benchmark, " ", "_") + "/server="
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && (fields[0] == "cpu:" || fields[0] == "kernel:" || fields[0] == "go:") {
			machine += strings.Join(fields[1:], " ") + ", "
		}
		i := slices.Index(fields, unit)
		server, ok := strings.CutPrefix(strings.Join(fields[:min(1, len(fields))], ""), prefix)
		if !ok || i < 2 {
			continue
		}
		v, err := strconv.ParseFloat(fields[i-1], 64)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", file, err)
		}
		values[server] = append(values[server], v)
	}
	return values, strings.TrimSuffix(machine, ", "), err
}

// A spread summarizes values. It is zero if there are no values.
type spread struct{ median, least, most float64 }

func newSpread(values []float64) (s spread) {
	if n := len(values); n > 0 {
		slices.Sort(values)
		s = spread{(values[(n-1)/2] + values[n/2]) / 2, values[0], values[n-1]}
	}
	return s
}
