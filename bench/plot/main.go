// Command plot draws the charts of doc/benchmarks.md from what compare and cluster have saved.
//
//	plot RESULTS CHARTS
//
// It reads the files NAME.json of the first directory and writes files NAME.svg to the second. A chart whose figures are
// not there is left as it is, so nothing has to be measured again for a chart to look different.
//
// A chart is an SVG of its own, which a browser shows as a picture: its colours follow the scheme of
// the reader, light or dark, by a style sheet within, and it has no background.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
	saved := &results{dir: from}
	for _, p := range plots {
		c, err := p.chart(saved)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if len(c.groups) == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(to, p.name+".svg"), c.svg(), 0o644); err != nil { // #nosec G306 G703 -- pictures are for everybody, in the directory that the user names
			return err
		}
	}
	return nil
}

// A plot is a chart, and where its figures come from.
type plot struct {
	name  string
	chart func(*results) (*chart, error)
}

// plots are all charts of the page.
var plots = []plot{
	{"throughput", ofReports(chart{title: "Commands per second, one at a time on each connection", better: moreIsBetter, kinds: servers}, "throughput",
		of("memory", "1 connection", ""),
		of("memory", "8 connections", ""),
		of("memory", "50 connections", ""),
		of("memory", "500 connections", ""),
		of("memory", "50 connections, 8 KiB bodies", "50, bodies of 8 KiB"),
		of("memory", "50 connections, 1,000,000 jobs in the queue", "50, a million jobs wait"),
		of("memory", "wake 50 workers that wait on one tube", "50 waiting workers"))},
	{"pipelined", ofReports(chart{title: "Commands per second, many before the first reply", better: moreIsBetter, kinds: servers}, "throughput",
		of("memory", "8 connections, 64 in flight", "put, reserve, delete"),
		of("memory", "put 1,000,000 jobs", "put a million jobs"),
		of("memory", "drain 1,000,000 jobs", "drain a million jobs"),
		of("journal", "8 connections, 64 in flight", "the same, with syncs"))},
	{"sync", ofReports(chart{title: "Commands per second, with a sync to disk before each reply", better: moreIsBetter, kinds: servers}, "throughput",
		of("journal", "1 connection, put and delete", "1 connection"),
		of("journal", "8 connections, put and delete", "8 connections"),
		of("journal", "64 connections, put and delete", "64 connections"),
		of("journal", "500 connections, put and delete", "500 connections"))},
	{"crowd", ofReports(chart{title: "Commands per second of 50 connections, beside others that do nothing", better: moreIsBetter, kinds: servers}, "throughput",
		of("crowd", "beside 1,000 tubes with a job in each", "1,000 tubes"),
		of("crowd", "beside 20,000 tubes with a job in each", "20,000 tubes"),
		of("crowd", "beside 100,000 tubes with a job in each", "100,000 tubes"),
		of("crowd", "beside 10,000 idle connections", "10,000 idle connections"))},
	{"memory", ofFigures(chart{title: "Memory of a job with a body of 64 bytes", better: lessIsBetter, kinds: servers[:2]},
		figure{"footprint", "memory", "RSS per job", "ready"},
		figure{"footprint", "memory", "RSS per delayed job", "delayed"},
		figure{"footprint", "memory", "RSS per buried job", "buried"},
		figure{"footprint-journal", "memory", "RSS per job", "ready, with a journal"},
		figure{"footprint-journal", "memory", "RSS per delayed job", "delayed, with a journal"},
		figure{"footprint-journal", "memory", "RSS per buried job", "buried, with a journal"})},
	{"restart", ofFigures(chart{title: "From a crash to the first reply", better: lessIsBetter, kinds: servers[:2]},
		figure{"restart", "restart", "time to the first reply", "1,000,000 jobs"},
		figure{"restart-large", "restart", "time to the first reply", "5,000,000 jobs"})},
	{"cluster", cluster},
}

const (
	moreIsBetter = "longer is better, × to beanstalkd"
	lessIsBetter = "shorter is better, × to beanstalkd"
)

// servers are what compare has measured: A, B and the responder.
var servers = []kind{
	{"them", "beanstalkd"}, {"us", "beanpole"}, {"ceiling", "a server that only answers"},
}

// A figure is one of the groups of bars of a chart: what experiment has which figure, in which file.
type figure struct{ file, experiment, name, label string }

// of is the figure of a load, which gets its name when the chart is made.
func of(file, experiment, label string) figure {
	if label == "" {
		label = experiment
	}
	return figure{file, experiment, "", label}
}

// ofReports makes a chart of the same figure of several loads.
func ofReports(c chart, name string, figures ...figure) func(*results) (*chart, error) {
	for i := range figures {
		figures[i].name = name
	}
	return ofFigures(c, figures...)
}

// ofFigures makes a chart of figures. Those that were not measured are left out.
func ofFigures(c chart, figures ...figure) func(*results) (*chart, error) {
	return func(saved *results) (*chart, error) {
		c := c
		for _, f := range figures {
			found, err := saved.figure(f.file, f.experiment, f.name)
			if err != nil {
				return nil, err
			}
			if found == nil {
				continue
			}
			c.unit = found.Unit
			g := group{label: f.label}
			for i := range c.kinds {
				s := &found.Servers[i]
				b := bar{kind: i}
				if s.Spread != nil {
					b.value, b.from, b.to, b.known = s.Median, s.Min, s.Max, true
				}
				if i == 1 && found.ToA.Spread != nil {
					b.ratio = found.ToA.Median
				}
				g.bars = append(g.bars, b)
			}
			c.groups = append(c.groups, g)
		}
		c.note = saved.note()
		return &c, nil
	}
}

// cluster is the chart of clusterbench.
func cluster(saved *results) (*chart, error) {
	c := &chart{
		title: "Puts per second, acknowledged when they are on the disks of a majority", better: "longer is better, × to JetStream", unit: load.PerSecond,
		kinds: []kind{{"them", ""}, {"us", ""}, {"more", ""}, {"ceiling", ""}},
	}
	rows, err := saved.cluster()
	if err != nil {
		return nil, err
	}
	// They come as they were measured: the single server, the leader, a follower, and JetStream.
	order := map[string]int{}
	for i, name := range []string{"JetStream, 3 replicas, sync always", "cluster of three, at the leader", "cluster of three, at a follower", "single server, sync before each reply"} {
		c.kinds[i].name, order[name] = name, i
	}
	for _, r := range rows {
		i, ok := order[r.Contender]
		if !ok {
			return nil, errors.New("unknown contender: " + r.Contender)
		}
		label := load.Plural(r.Clients, "client")
		if n := len(c.groups); n == 0 || c.groups[n-1].label != label {
			c.groups = append(c.groups, group{label: label, bars: make([]bar, len(c.kinds))})
		}
		g := &c.groups[len(c.groups)-1]
		g.bars[i] = bar{kind: i, value: r.Rate.Median, from: r.Rate.Min, to: r.Rate.Max, known: true}
	}
	for _, g := range c.groups {
		if theirs := g.bars[0]; theirs.known && theirs.value > 0 {
			for i := 1; i <= 2; i++ {
				g.bars[i].ratio = g.bars[i].value / theirs.value
			}
		}
	}
	c.note = saved.note()
	return c, nil
}
