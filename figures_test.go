package beanpole_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var updateFigures = flag.Bool("figures.update", false, "write the table of doc/benchmarks.md")

// A measured figure is one of bench/results: which file, experiment and figure has it.
type measured struct{ label, file, experiment, figure string }

// shown are the rows of doc/benchmarks.md.
var shown = []measured{
	{"1 connection, put, reserve, delete", "memory", "1 connection", "throughput"},
	{"8 connections", "memory", "8 connections", "throughput"},
	{"50 connections", "memory", "50 connections", "throughput"},
	{"the same: processor time per command", "memory", "50 connections", "CPU per command"},
	{"the same: p99", "memory", "50 connections", "p99"},
	{"500 connections", "memory", "500 connections", "throughput"},
	{"50 connections, a million jobs in the queue", "memory", "50 connections, 1,000,000 jobs in the queue", "throughput"},
	{"50 connections beside 20,000 tubes", "crowd", "beside 20,000 tubes with a job in each", "throughput"},
	{"8 connections, 64 commands in flight", "memory", "8 connections, 64 in flight", "throughput"},
	{"a sync before each reply, 1 connection", "journal", "1 connection, put and delete", "throughput"},
	{"a sync before each reply, 8 connections", "journal", "8 connections, put and delete", "throughput"},
	{"a sync before each reply, 64 connections", "journal", "64 connections, put and delete", "throughput"},
	{"a sync before each reply, 500 connections", "journal", "500 connections, put and delete", "throughput"},
	{"memory of a job, 64 bytes, ready", "footprint", "memory", "RSS per job"},
	{"memory of a job, 64 bytes, with a journal", "footprint-journal", "memory", "RSS per job"},
	{"restart with a million jobs after a crash", "restart", "restart", "time to the first reply"},
}

// read returns what was measured of beanstalkd and beanpole, and their ratio.
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

func (m measured) ratio(t *testing.T) float64 {
	_, _, ratio, _ := m.read(t)
	return ratio
}

// The table of doc/benchmarks.md has what was measured.
func TestFigures(t *testing.T) {
	const page = "doc/benchmarks.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	table := "| | beanstalkd | beanpole | ratio |\n|---|--:|--:|--:|\n"
	for _, m := range shown {
		theirs, ours, ratio, unit := m.read(t)
		table += fmt.Sprintf("| %s | %s | %s | %.*f |\n", m.label, human(theirs, unit), human(ours, unit), places(ratio), ratio)
	}
	before, rest, _ := strings.Cut(string(text), "<!-- figures -->\n")
	got, after, ok := strings.Cut(rest, "<!-- end -->\n")
	if !ok {
		t.Fatalf("%s has no marks for its table", page)
	}
	switch {
	case got == table:
	case *updateFigures:
		if err := os.WriteFile(page, []byte(before+"<!-- figures -->\n"+table+"<!-- end -->\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s has\n%sand measured was\n%sgo test . -run TestFigures -figures.update writes it", page, got, table)
	}
}

// places is how many decimals of a ratio say something.
func places(ratio float64) int {
	if ratio < 10 {
		return 2
	}
	return 0
}

// human writes a figure in a unit of its size.
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

// What README claims is what was measured.
func TestClaims(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := strings.Join(strings.Fields(string(text)), " ")
	throughput := func(file string, experiments ...string) (ratios []float64) {
		for _, e := range experiments {
			ratios = append(ratios, measured{"", file, e, "throughput"}.ratio(t))
		}
		return ratios
	}
	claims := []struct {
		claim string // its numbers are parenthesized
		want  []float64
		round string // how the claim rounds them
	}{
		{`([\d.]+) to ([\d.]+) times the commands/s`, throughput("memory", "8 connections", "500 connections"), "%.1f"},
		{`([\d.]+) times with 8 connections, (\d+) times with 64 and (\d+) times with 500, when each reply waits for the disk`,
			throughput("journal", "8 connections, put and delete", "64 connections, put and delete", "500 connections, put and delete"), "%.2g"},
	}
	for _, c := range claims {
		m := regexp.MustCompile(c.claim).FindStringSubmatch(readme)
		if m == nil {
			t.Errorf("README does not say %s", c.claim)
			continue
		}
		for i, want := range c.want {
			if got := m[i+1]; got != fmt.Sprintf(c.round, want) {
				t.Errorf("README says %q, and measured was %v", m[0], c.want)
			}
		}
	}
	if more := regexp.MustCompile(`more than (\d+) times the commands/s with pipelining`).FindStringSubmatch(readme); more == nil {
		t.Error("README does not say how fast pipelining is")
	} else if n, _ := strconv.ParseFloat(more[1], 64); throughput("memory", "8 connections, 64 in flight")[0] <= n {
		t.Errorf("README says %q", more[0])
	}
	if r := (measured{"", "restart", "restart", "time to the first reply"}).ratio(t); strings.Contains(readme, "in a seventh of the time") != (r < 1/6.5) {
		t.Errorf("a restart takes %.2f of beanstalkd's time, and README says something else", r)
	}
	for _, file := range []string{"footprint", "footprint-journal"} {
		r := measured{"", file, "memory", "RSS per job"}.ratio(t)
		if !strings.Contains(readme, "half the memory for a job with a body of 64 bytes") || fmt.Sprintf("%.1f", r) != "0.5" {
			t.Errorf("%s: a small job takes %.2f of beanstalkd's memory, and README says something else", file, r)
		}
	}
	for _, n := range []string{"8 connections", "50 connections", "500 connections"} {
		if r := (measured{"", "memory", n, "CPU per command"}).ratio(t); r > 0.75 {
			t.Errorf("README says three quarters of the processor time or less, and with %s it was %.2f", n, r)
		}
	}
}
