// Command plot draws the charts of doc/benchmarks.md from what compare and cluster have saved.
//
//	plot RESULTS CHARTS
//
// It reads the files NAME.json of the first directory and writes files NAME.svg to the second.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/beanpole-mq/beanpole/bench"
	"github.com/beanpole-mq/beanpole/bench/load"
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
	for _, p := range append(plots, plot{name: "cluster"}) {
		read := p.chart
		if p.figures == nil {
			read = cluster
		}
		c, err := read(from)
		if err == nil {
			err = c.draw(filepath.Join(to, p.name+".svg"))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// A plot is a chart of figures that compare has measured.
type plot struct {
	name, title, better string
	kinds               []kind
	figures             []figure
}

// A figure is a group of bars: what experiment has which figure, in which file.
type figure struct{ file, experiment, name, label string }

const (
	moreIsBetter = "longer is better, × to beanstalkd"
	lessIsBetter = "shorter is better, × to beanstalkd"
)

// servers are what compare has measured: A, B and the responder.
var servers = []kind{{Class: "them", Name: "beanstalkd"}, {Class: "us", Name: "beanpole"}, {Class: "ceiling", Name: "a server that only answers"}}

var plots = []plot{
	{"throughput", "Commands per second, one at a time on each connection", moreIsBetter, servers, []figure{
		{"memory", "1 connection", "throughput", "1 connection"},
		{"memory", "8 connections", "throughput", "8 connections"},
		{"memory", "50 connections", "throughput", "50 connections"},
		{"memory", "500 connections", "throughput", "500 connections"},
		{"memory", "50 connections, 8 KiB bodies", "throughput", "50, bodies of 8 KiB"},
		{"memory", "50 connections, 1,000,000 jobs in the queue", "throughput", "50, a million jobs wait"},
		{"memory", "wake 50 workers that wait on one tube", "throughput", "50 waiting workers"}}},
	{"pipelined", "Commands per second, many before the first reply", moreIsBetter, servers, []figure{
		{"memory", "8 connections, 64 in flight", "throughput", "put, reserve, delete"},
		{"memory", "put 1,000,000 jobs", "throughput", "put a million jobs"},
		{"memory", "drain 1,000,000 jobs", "throughput", "drain a million jobs"},
		{"journal", "8 connections, 64 in flight", "throughput", "the same, with syncs"}}},
	{"sync", "Commands per second, with a sync to disk before each reply", moreIsBetter, servers, []figure{
		{"journal", "1 connection, put and delete", "throughput", "1 connection"},
		{"journal", "8 connections, put and delete", "throughput", "8 connections"},
		{"journal", "64 connections, put and delete", "throughput", "64 connections"},
		{"journal", "500 connections, put and delete", "throughput", "500 connections"}}},
	{"crowd", "Commands per second of 50 connections, beside others that do nothing", moreIsBetter, servers, []figure{
		{"crowd", "beside 1,000 tubes with a job in each", "throughput", "1,000 tubes"},
		{"crowd", "beside 20,000 tubes with a job in each", "throughput", "20,000 tubes"},
		{"crowd", "beside 100,000 tubes with a job in each", "throughput", "100,000 tubes"},
		{"crowd", "beside 10,000 idle connections", "throughput", "10,000 idle connections"}}},
	{"memory", "Memory of a job with a body of 64 bytes", lessIsBetter, servers[:2], []figure{
		{"footprint", "memory", "RSS per job", "ready"},
		{"footprint", "memory", "RSS per delayed job", "delayed"},
		{"footprint", "memory", "RSS per buried job", "buried"},
		{"footprint-journal", "memory", "RSS per job", "ready, with a journal"},
		{"footprint-journal", "memory", "RSS per delayed job", "delayed, with a journal"},
		{"footprint-journal", "memory", "RSS per buried job", "buried, with a journal"}}},
	{"restart", "From a crash to the first reply", lessIsBetter, servers[:2], []figure{
		{"restart", "restart", "time to the first reply", "1,000,000 jobs"},
		{"restart-large", "restart", "time to the first reply", "5,000,000 jobs"}}},
}

// chart reads the figures of a chart. Those that were not measured are left out.
func (p plot) chart(dir string) (*chart, error) {
	c := &chart{Title: p.title, Better: p.better, Kinds: slices.Clone(p.kinds)}
	for _, f := range p.figures {
		reports, err := read[bench.Report](dir, f.file, &c.Measured)
		if err != nil {
			return nil, err
		}
		for _, r := range reports {
			for _, found := range r.Figures {
				if r.Name == f.experiment && found.Name == f.name {
					c.unit = found.Unit
					c.Groups = append(c.Groups, newGroup(f.label, &found, len(p.kinds)))
				}
			}
		}
	}
	return c, nil
}

func newGroup(label string, f *bench.Figure, kinds int) group {
	g := group{Label: label, Bars: make([]bar, kinds)}
	for i := range g.Bars {
		if s := f.Servers[i].Spread; s != nil {
			g.Bars[i].of = *s
		}
	}
	if f.ToA.Spread != nil {
		g.Bars[1].ratio = f.ToA.Median
	}
	return g
}

// cluster reads what the program of that name has saved.
func cluster(dir string) (*chart, error) {
	c := &chart{
		Title: "Puts per second, acknowledged when they are on the disks of a majority", Better: "longer is better, × to JetStream", unit: load.PerSecond,
		Kinds: []kind{
			{Class: "them", Name: "JetStream, 3 replicas, sync always"}, {Class: "us", Name: "cluster of three, at the leader"},
			{Class: "more", Name: "cluster of three, at a follower"}, {Class: "ceiling", Name: "single server, sync before each reply"},
		},
	}
	rows, err := read[bench.Puts](dir, "cluster", &c.Measured)
	if err != nil {
		return nil, err
	}
	groups := map[int]int{} // by the number of clients
	for _, r := range rows {
		g, ok := groups[r.Clients]
		if !ok {
			g = len(c.Groups)
			groups[r.Clients] = g
			c.Groups = append(c.Groups, group{Label: load.Plural(r.Clients, "client"), Bars: make([]bar, len(c.Kinds))})
		}
		for i, k := range c.Kinds {
			if k.Name == r.Contender {
				c.Groups[g].Bars[i].of = r.Rate
			}
		}
	}
	for _, g := range c.Groups {
		if theirs := g.Bars[0].of.Median; theirs > 0 {
			g.Bars[1].ratio, g.Bars[2].ratio = g.Bars[1].of.Median/theirs, g.Bars[2].of.Median/theirs
		}
	}
	return c, nil
}

// read decodes the lines of a file: the first says what machine it was, the others are values.
func read[T any](dir, name string, m *bench.Measured) (all []T, err error) {
	f, err := os.Open(filepath.Join(dir, name+".json"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(f))
	for err = d.Decode(m); err == nil && d.More(); {
		all = append(all, *new(T))
		err = d.Decode(&all[len(all)-1])
	}
	if err != nil {
		err = fmt.Errorf("%s.json: %w", name, err)
	}
	return all, err
}
