package load

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// chosen is a run with figures chosen for their looks.
func chosen(perSecond float64, p50, p99, cpu time.Duration) Result {
	return Result{
		Throughput: perSecond,
		Latency:    Latency{P50: p50, P99: p99, P999: 2 * p99},
		Server:     &ServerUsage{CPUPerCommand: cpu, PeakRSS: 3 << 19},
	}
}

// comparison is one of three rounds.
func comparison() Comparison {
	const us, ms = time.Microsecond, time.Millisecond
	c := Comparison{
		Name: "50 connections",
		A: Side{Name: "old", Runs: []Result{
			chosen(100_000, 100*us, 12*ms, 8*us),
			chosen(110_000, 110*us, 12*ms, 8*us),
			chosen(90_000, 90*us, 12*ms, 8*us),
		}},
		B: Side{Name: "new", Runs: []Result{
			chosen(200_000, 50*us, 3*ms, 4*us),
			chosen(330_000, 55*us, 3*ms, 4*us),
			chosen(90_000, 90*us, 12*ms, 8*us),
		}},
		Responder: &Side{Name: "responder", Runs: []Result{
			chosen(400_000, 25*us, 1*ms, 2*us),
			chosen(330_000, 25*us, 1*ms, 4*us),
			chosen(100_000, 25*us, 1*ms, 8*us),
		}},
	}
	c.sum()
	return c
}

// crowded is one with a baseline, and a server that was left out.
func crowded() Comparison {
	const us = time.Microsecond
	with := func(r Result, each float64) Result {
		r.Crowd = &CrowdUsage{RSSEach: each}
		return r
	}
	c := Comparison{
		Name:     "beside many",
		Baseline: "alone",
		A: Side{Name: "old", LeftOut: "it was asleep", Baseline: &Side{Name: "old", Runs: []Result{
			chosen(100_000, 100*us, 200*us, 8*us),
		}}},
		B: Side{
			Name:     "new",
			Runs:     []Result{with(chosen(90_000, 100*us, 300*us, 8*us), 2048), with(chosen(100_000, 100*us, 200*us, 8*us), 3072)},
			Baseline: &Side{Name: "new", Runs: []Result{chosen(100_000, 100*us, 200*us, 8*us), chosen(100_000, 100*us, 200*us, 8*us)}},
		},
	}
	c.sum()
	return c
}

func TestWriteMarkdown(t *testing.T) {
	unknown := comparison()
	unknown.Name, unknown.Responder, unknown.ToResponder = "no PID", nil, nil
	for _, runs := range [][]Result{unknown.A.Runs, unknown.B.Runs} {
		for i := range runs {
			runs[i].Server = nil
		}
	}
	unknown.sum()
	var b bytes.Buffer
	m := Machine{CPUs: 2, Model: "Abacus 9", Kernel: "Linux 1.0", Arch: "amd64", Go: "go1.26"}
	if err := WriteMarkdown(&b, m, []Comparison{comparison(), crowded(), unknown}); err != nil {
		t.Fatal(err)
	}
	golden(t, "tables.md", b.String())
}

// Without a responder there are no columns for it.
func TestWriteMarkdownWithoutResponder(t *testing.T) {
	c := comparison()
	c.Responder, c.ToResponder = nil, nil
	var b bytes.Buffer
	if err := WriteMarkdown(&b, Machine{}, []Comparison{c}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "responder") || !strings.Contains(b.String(), "| 50 connections | 100,000 | 200,000 | 2.00 (1.00..3.00) | 8.00 us |") {
		t.Errorf("got\n%s", b.String())
	}
}

func TestWriteTable(t *testing.T) {
	var b bytes.Buffer
	for _, c := range []Comparison{comparison(), crowded()} {
		if err := c.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "tables.txt", b.String())
}

var update = flag.Bool("load.update", false, "write the files in testdata anew")

// golden compares got with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant, as in %s (-load.update writes it anew),\n%s", got, path, want)
	}
}

func TestWriteJSONLines(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJSONLines(&b, comparison(), comparison()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines, want 2", len(lines))
	}
	var c Comparison
	if err := json.Unmarshal([]byte(lines[1]), &c); err != nil {
		t.Fatal(err)
	}
	if c.ToA.Throughput.Median != 2 || c.A.Runs[0].Latency.P50 != 100*time.Microsecond || c.Load.Mix != PutReserveDelete {
		t.Errorf("came back as %+v", c)
	}
}
