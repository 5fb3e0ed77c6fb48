package beanpole_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var updateFigures = flag.Bool("figures.update", false, "write the tables of doc/benchmarks.md and README.md")

// measured names a figure: its file in bench/results, its experiment and its name there.
type measured struct{ label, file, experiment, figure string }

// shown are the rows of doc/benchmarks.md.
var shown = []measured{
	{"1 connection: put, reserve, delete", "memory", "1 connection", "throughput"},
	{"8 connections", "memory", "8 connections", "throughput"},
	{"50 connections", "memory", "50 connections", "throughput"},
	{"50 connections: CPU time per command", "memory", "50 connections", "CPU per command"},
	{"50 connections: p99", "memory", "50 connections", "p99"},
	{"500 connections", "memory", "500 connections", "throughput"},
	{"50 connections, one million jobs in the queue", "memory", "50 connections, 1,000,000 jobs in the queue", "throughput"},
	{"50 connections, 20,000 other tubes", "crowd", "beside 20,000 tubes with a job in each", "throughput"},
	{"8 connections, 64 commands in flight", "memory", "8 connections, 64 in flight", "throughput"},
	{"Synced replies, 1 connection", "journal", "1 connection, put and delete", "throughput"},
	{"Synced replies, 8 connections", "journal", "8 connections, put and delete", "throughput"},
	{"Synced replies, 64 connections", "journal", "64 connections, put and delete", "throughput"},
	{"Synced replies, 500 connections", "journal", "500 connections, put and delete", "throughput"},
	{"Memory per job, 64-byte body", "footprint", "memory", "RSS per job"},
	{"Memory per job, 64-byte body, with a journal", "footprint-journal", "memory", "RSS per job"},
	{"Restart after a crash, one million jobs", "restart", "restart", "time to the first reply"},
}

// summary are the rows of README.md: the labels of figures, and what their ratios mean.
var summary = []struct {
	label, unit string
	figures     []measured
}{
	{"Commands per second, 8, 50 and 500 connections", " times", []measured{shown[1], shown[2], shown[5]}},
	{"CPU time per command, 50 connections", " of the time", []measured{shown[3]}},
	{"Commands per second, pipelined", " times", []measured{shown[8]}},
	{"Commands per second, synced replies, 8, 64 and 500 connections", " times", []measured{shown[10], shown[11], shown[12]}},
	{"Restart after a crash, one million jobs", " of the time", []measured{shown[15]}},
	{"Memory per job, 64-byte body", " of the memory", []measured{shown[13]}},
}

// read returns the figures of beanstalkd and beanpole, and their ratio.
func (m measured) read(t *testing.T) (theirs, ours, ratio float64, unit string) {
	t.Helper()
	f, err := os.Open("bench/results/" + m.file + ".json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type median struct{ Median float64 }
	for d := json.NewDecoder(bufio.NewReader(f)); d.More(); {
		var report struct {
			Name    string
			Figures []struct {
				Name, Unit string
				Servers    []median
				ToA        median `json:"to_a"`
			}
		}
		if err := d.Decode(&report); err != nil {
			t.Fatal(err)
		}
		for _, f := range report.Figures {
			if report.Name == m.experiment && f.Name == m.figure {
				theirs, ours := f.Servers[0].Median, f.Servers[1].Median
				return theirs, ours, cmp.Or(f.ToA.Median, ours/theirs), f.Unit
			}
		}
	}
	t.Fatalf("%s.json has no figure %q of %q", m.file, m.figure, m.experiment)
	return 0, 0, 0, ""
}

// The table of doc/benchmarks.md contains the figures in bench/results.
func TestFigures(t *testing.T) {
	table := "| | beanstalkd | beanpole | ratio |\n|---|--:|--:|--:|\n"
	for _, m := range shown {
		theirs, ours, ratio, unit := m.read(t)
		table += fmt.Sprintf("| %s | %s | %s | %.*f |\n", m.label, human(theirs, unit), human(ours, unit), places(ratio), ratio)
	}
	generated(t, "doc/benchmarks.md", table)
}

// The table of README.md contains the ratios in bench/results.
func TestSummary(t *testing.T) {
	table := "| | beanpole compared with beanstalkd |\n|---|---|\n"
	for _, row := range summary {
		var ratios []string
		for _, m := range row.figures {
			_, _, ratio, _ := m.read(t)
			ratios = append(ratios, fmt.Sprintf("%.2g", ratio))
		}
		list := strings.Join(ratios, ", ")
		if i := strings.LastIndex(list, ","); i >= 0 {
			list = list[:i] + " and" + list[i+1:]
		}
		table += fmt.Sprintf("| %s | %s%s |\n", row.label, list, row.unit)
	}
	generated(t, "README.md", table)
}

// generated compares the table between the marks of a page with what it must be, and
// writes it if -figures.update is set.
func generated(t *testing.T, page, table string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), "<!-- figures -->\n")
	got, after, ok := strings.Cut(rest, "<!-- end -->\n")
	switch {
	case !ok:
		t.Fatalf("%s has no marks for its table", page)
	case got == table:
	case *updateFigures:
		if err := os.WriteFile(page, []byte(before+"<!-- figures -->\n"+table+"<!-- end -->\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s has\n%s\nwant\n%s\nto write it, run: go test . -run 'Figures|Summary' -figures.update", page, got, table)
	}
}

// places returns the number of significant decimals of a ratio.
func places(ratio float64) int {
	if ratio < 10 {
		return 2
	}
	return 0
}

// human formats a figure in a suitable unit.
func human(v float64, unit string) string {
	switch unit {
	case "1/s":
		n := fmt.Sprintf("%.0f", v)
		for i := len(n) - 3; i > 0; i -= 3 {
			n = n[:i] + "," + n[i:]
		}
		return n + "/s"
	case "ns":
		switch {
		case v >= 1e9:
			return fmt.Sprintf("%.2g s", v/1e9)
		case v >= 1e6:
			return fmt.Sprintf("%.3g ms", v/1e6)
		}
		return fmt.Sprintf("%.3g us", v/1e3)
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}
