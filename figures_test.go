package beanpole_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var updateFigures = flag.Bool("figures.update", false, "write the tables of doc/benchmarks.md and README.md")

// measured names a figure: its file in bench/results, its benchmark and its unit there.
type measured struct{ label, file, benchmark, unit string }

// shown contains the rows of doc/benchmarks.md.
var shown = []measured{
	{"1 connection: put, reserve, delete", "memory", "Memory/1 connection", "cmds/s"},
	{"8 connections", "memory", "Memory/8 connections", "cmds/s"},
	{"50 connections", "memory", "Memory/50 connections", "cmds/s"},
	{"50 connections: CPU time per command", "memory", "Memory/50 connections", "cpu-ns/cmd"},
	{"50 connections: p99", "memory", "Memory/50 connections", "p99-ns"},
	{"500 connections", "memory", "Memory/500 connections", "cmds/s"},
	{"50 connections, one million jobs in the queue", "memory", "Memory/50 connections, 1,000,000 jobs in the queue", "cmds/s"},
	{"50 connections, 20,000 other tubes", "crowd", "Crowd/beside 20,000 tubes with a job in each", "cmds/s"},
	{"8 connections, 64 commands in flight", "memory", "Memory/8 connections, 64 in flight", "cmds/s"},
	{"Synced replies, 1 connection", "journal", "Journal/1 connection, put and delete", "cmds/s"},
	{"Synced replies, 8 connections", "journal", "Journal/8 connections, put and delete", "cmds/s"},
	{"Synced replies, 64 connections", "journal", "Journal/64 connections, put and delete", "cmds/s"},
	{"Synced replies, 500 connections", "journal", "Journal/500 connections, put and delete", "cmds/s"},
	{"Memory per job, 64-byte body", "footprint", "Footprint/2000000 jobs", "bytes/job"},
	{"Memory per job, 64-byte body, with a journal", "footprint-journal", "Footprint/2000000 jobs", "bytes/job"},
	{"Restart after a crash, one million jobs", "restart", "Restart/1000000 jobs", "reply-ns"},
}

// summary contains the rows of README.md: the labels of figures, and the meanings of
// their ratios.
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

// read returns the medians of beanstalkd and beanpole, and their ratio.
func (m measured) read(t *testing.T) (theirs, ours, ratio float64) {
	t.Helper()
	text, err := os.ReadFile("bench/results/" + m.file + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	median := func(server string) float64 {
		name := "Benchmark" + strings.ReplaceAll(m.benchmark, " ", "_") + "/server=" + server
		var values []float64
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 0 && fields[0] == name {
				if i := slices.Index(fields, m.unit); i > 0 {
					v, err := strconv.ParseFloat(fields[i-1], 64)
					if err != nil {
						t.Fatal(err)
					}
					values = append(values, v)
				}
			}
		}
		if len(values) == 0 {
			t.Fatalf("%s.txt has no %s of %s", m.file, m.unit, name)
		}
		slices.Sort(values)
		return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
	}
	theirs, ours = median("beanstalkd"), median("beanpole")
	return theirs, ours, ours / theirs
}

// The table of doc/benchmarks.md contains the figures in bench/results.
func TestFigures(t *testing.T) {
	table := "| | beanstalkd | beanpole | ratio |\n|---|--:|--:|--:|\n"
	for _, m := range shown {
		theirs, ours, ratio := m.read(t)
		table += fmt.Sprintf("| %s | %s | %s | %.*f |\n", m.label, human(theirs, m.unit), human(ours, m.unit), places(ratio), ratio)
	}
	generated(t, "doc/benchmarks.md", table)
}

// The table of README.md contains the ratios in bench/results.
func TestSummary(t *testing.T) {
	table := "| | beanpole compared with beanstalkd |\n|---|---|\n"
	for _, row := range summary {
		var ratios []string
		for _, m := range row.figures {
			_, _, ratio := m.read(t)
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

// generated compares the table between the marks of a page with the expected table. It
// writes the table if -figures.update is set.
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
	switch {
	case unit == "cmds/s":
		n := fmt.Sprintf("%.0f", v)
		for i := len(n) - 3; i > 0; i -= 3 {
			n = n[:i] + "," + n[i:]
		}
		return n + "/s"
	case strings.Contains(unit, "ns"):
		switch {
		case v >= 1e9:
			return fmt.Sprintf("%.2g s", v/1e9)
		case v >= 1e6:
			return fmt.Sprintf("%.3g ms", v/1e6)
		}
		return fmt.Sprintf("%.3g us", v/1e3)
	}
	return fmt.Sprintf("%.0f bytes", v)
}
