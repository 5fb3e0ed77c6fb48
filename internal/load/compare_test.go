package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// The responder against itself, in processes of their own: everything but a
// real server.
func TestCompare(t *testing.T) {
	a, b := thisResponder(t), thisResponder(t)
	a.Name, b.Name = "a", "b"
	var turns []string
	c, err := Compare(t.Context(), CompareOptions{
		A: a, B: b, Responder: a, Rounds: 2,
		Load:     Options{Connections: 2, InFlight: 4, Ops: 200},
		Progress: func(server string, _ Result) { turns = append(turns, server) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(turns, " "); got != "ceiling a b a b" {
		t.Errorf("turns %q", got)
	}
	for _, s := range []Side{c.A, c.B} {
		if len(s.Runs) != 2 || s.Throughput <= 0 || s.P50 <= 0 || s.P99 < s.P50 {
			t.Errorf("side %+v", s)
		}
		for _, r := range s.Runs {
			if r.Commands != 600 {
				t.Errorf("%s: %d commands, want 600", s.Name, r.Commands)
			}
		}
	}
	for _, r := range []Ratio{c.Throughput, c.P50, c.P99} {
		if r.Min <= 0 || r.Median < r.Min || r.Max < r.Median {
			t.Errorf("ratio %+v", r)
		}
	}
	if c.Ceiling == nil || c.Ceiling.Commands != 600 {
		t.Errorf("ceiling %+v", c.Ceiling)
	}
}

func TestSuiteWithBeanstalkd(t *testing.T) {
	real, plain := beanstalkd(t), thisResponder(t)
	plain.Command = plain.Command[:1] // the scenarios' arguments complete it
	all, err := RunSuite(t.Context(), SuiteOptions{
		A: real, B: plain, Rounds: 1,
		Scenarios: []Scenario{
			{Name: "small jobs only", Load: Options{Ops: 100}, ArgsA: []string{"-z", "100"}, ArgsB: []string{"127.0.0.1:{port}"}},
			{Name: "fails", Load: Options{Ops: 1, BodySize: 101}, ArgsA: []string{"-z", "100"}},
			{Name: "journal", Load: Options{Ops: 10}, ArgsA: []string{"-b", "{dir}"}, ArgsB: []string{"127.0.0.1:{port}"}},
		},
	})
	if err == nil || !strings.Contains(err.Error(), `scenario "fails": beanstalkd: load: unexpected reply to put`) {
		t.Errorf("error %v", err)
	}
	if len(all) != 2 || all[0].Name != "small jobs only" || all[1].Name != "journal" {
		t.Fatalf("%d comparisons: %+v", len(all), all)
	}
	if all[0].A.Runs[0].Commands != 300 {
		t.Errorf("%d commands", all[0].A.Runs[0].Commands)
	}
}

func TestCancelEndsTheServers(t *testing.T) {
	s := thisResponder(t)
	errEnough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	var pids []int
	_, err := Compare(ctx, CompareOptions{
		A: s, B: s, Load: Options{Ops: 10},
		Progress: func(_ string, r Result) {
			if r.Server != nil {
				pids = append(pids, r.Server.PID)
			}
			cancel(errEnough)
		},
	})
	if !errors.Is(err, errEnough) && !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	for _, pid := range pids {
		if readUsage(pid).ok {
			t.Errorf("process %d still runs", pid)
		}
	}
}

func TestServerThatDoesNotStart(t *testing.T) {
	for want, s := range map[string]Server{
		"without a command":            {},
		"executable file not found":    {Command: []string{"no-such-program"}},
		"did not start: exit status 3": {Command: []string{"sh", "-c", "echo no luck; exit 3"}},
		"; it said: no luck":           {Command: []string{"sh", "-c", "echo no luck; exit 3"}},
	} {
		p, err := s.start(t.Context())
		if err == nil {
			p.stop()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", s.Command, err, want)
		}
	}
}

func TestServerIsCleanedUp(t *testing.T) {
	s := thisResponder(t)
	s.Command = append(s.Command, "{dir}")
	p, err := s.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.dir); err != nil {
		t.Error(err)
	}
	p.stop()
	if _, err := os.Stat(p.dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
	if readUsage(p.pid).ok {
		t.Error("the process still runs")
	}
}

// comparison is one with figures chosen for their looks.
func comparison() Comparison {
	run := func(perSecond float64, p50, p99, cpu time.Duration) Result {
		return Result{
			Throughput: perSecond,
			Latency:    Latency{P50: p50, P99: p99},
			Server:     &ServerUsage{CPUPerCommand: cpu, PeakRSS: 3 << 19},
		}
	}
	c := Comparison{
		Name: "50 connections",
		A: Side{Name: "old", Runs: []Result{
			run(100_000, 100*time.Microsecond, 12*time.Millisecond, 8*time.Microsecond),
			run(110_000, 110*time.Microsecond, 12*time.Millisecond, 8*time.Microsecond),
			run(90_000, 90*time.Microsecond, 12*time.Millisecond, 8*time.Microsecond),
		}},
		B: Side{Name: "new", Runs: []Result{
			run(200_000, 50*time.Microsecond, 3*time.Millisecond, 4*time.Microsecond),
			run(330_000, 55*time.Microsecond, 3*time.Millisecond, 4*time.Microsecond),
			run(90_000, 90*time.Microsecond, 12*time.Millisecond, 8*time.Microsecond),
		}},
		Ceiling: &Result{Throughput: 1_234_567},
	}
	c.sum()
	return c
}

func TestRatiosAreOfPairs(t *testing.T) {
	c := comparison()
	if want := (Ratio{Median: 2, Min: 1, Max: 3}); c.Throughput != want {
		t.Errorf("throughput ratio %+v, want %+v", c.Throughput, want)
	}
	if want := (Ratio{Median: 0.5, Min: 0.5, Max: 1}); c.P50 != want || c.CPUPerCommand != want {
		t.Errorf("p50 ratio %+v, CPU ratio %+v, want %+v", c.P50, c.CPUPerCommand, want)
	}
	if c.A.Throughput != 100_000 || c.B.Throughput != 200_000 {
		t.Errorf("medians %v and %v", c.A.Throughput, c.B.Throughput)
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		all  []float64
		want float64
	}{{nil, 0}, {[]float64{4}, 4}, {[]float64{9, 1}, 5}, {[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(tt.all); got != tt.want {
			t.Errorf("median of %v is %v, want %v", tt.all, got, tt.want)
		}
	}
}

func TestWriteMarkdown(t *testing.T) {
	unknown := comparison()
	unknown.Name, unknown.Ceiling = "no PID", nil
	for _, runs := range [][]Result{unknown.A.Runs, unknown.B.Runs} {
		for i := range runs {
			runs[i].Server = nil
		}
	}
	unknown.CPUPerCommand = Ratio{}
	unknown.sum()
	var b bytes.Buffer
	m := Machine{CPUs: 2, Model: "Abacus 9", Kernel: "Linux 1.0", Arch: "amd64", Go: "go1.26"}
	if err := WriteMarkdown(&b, m, []Comparison{comparison(), unknown}); err != nil {
		t.Fatal(err)
	}
	const want = `2 cores of Abacus 9, Linux 1.0 amd64, go1.26

| scenario | old, commands/s | new, commands/s | ratio (min..max) | CPU per command old | new | ratio | p50 old | new | p99 old | new | peak RSS old | new | ceiling, commands/s |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
| 50 connections | 100,000 | 200,000 | 2.00 (1.00..3.00) | 8.00 us | 4.00 us | 0.50 (0.50..1.00) | 100 us | 55.00 us | 12.0 ms | 3000 us | 1.5 MiB | 1.5 MiB | 1,234,567 |
| no PID | 100,000 | 200,000 | 2.00 (1.00..3.00) | - | - | - | 100 us | 55.00 us | 12.0 ms | 3000 us | - | - | - |
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWriteTable(t *testing.T) {
	c := comparison()
	var b bytes.Buffer
	if err := c.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	const want = `50 connections
            commands/s         p50         p99  CPU per command  peak RSS
       old     100,000      100 us     12.0 ms          8.00 us   1.5 MiB
       new     200,000    55.00 us     3000 us          4.00 us   1.5 MiB
     ratio        2.00        0.50        0.25             0.50
  from..to  1.00..3.00  0.50..1.00  0.25..1.00       0.50..1.00
ceiling of the generator: 1,234,567 commands/s, - CPU per command
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
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
	if c.Throughput.Median != 2 || c.A.Runs[0].Latency.P50 != 100*time.Microsecond || c.Load.Mix != PutReserveDelete {
		t.Errorf("came back as %+v", c)
	}
}
