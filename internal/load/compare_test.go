package load

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// The responder against itself, in processes of their own: everything but a
// real server.
func TestCompare(t *testing.T) {
	a, b := thisResponder(t), thisResponder(t)
	a.Name, b.Name = "a", "b"
	var turns []string
	c, err := Compare(t.Context(), CompareOptions{
		A: a, B: b, Responder: thisResponder(t), Rounds: 2,
		Load:     Options{Connections: 2, InFlight: 4, Ops: 200},
		Progress: func(server string, _ Result) { turns = append(turns, server) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(turns, " "); got != "responder a b responder a b" {
		t.Errorf("turns %q", got)
	}
	if c.Responder == nil || c.ToResponder == nil {
		t.Fatalf("the responder is no side of %+v", c)
	}
	for _, s := range []Side{c.A, c.B, *c.Responder} {
		if len(s.Runs) != 2 || s.Throughput <= 0 || s.P50 <= 0 || s.P99 < s.P50 || s.P999 < s.P99 {
			t.Errorf("side %+v", s)
		}
		for _, r := range s.Runs {
			if r.Commands != 600 {
				t.Errorf("%s: %d commands, want 600", s.Name, r.Commands)
			}
		}
	}
	for _, r := range []Ratio{c.ToA.Throughput, c.ToA.P50, c.ToA.P99, c.ToA.P999, c.ToResponder.Throughput} {
		if r.Min <= 0 || r.Median < r.Min || r.Max < r.Median {
			t.Errorf("ratio %+v", r)
		}
	}
}

func TestCompareWithoutResponder(t *testing.T) {
	s := thisResponder(t)
	c, err := Compare(t.Context(), CompareOptions{A: s, B: s, Rounds: 1, Load: Options{Ops: 10}})
	if err != nil {
		t.Fatal(err)
	}
	if c.Responder != nil || c.ToResponder != nil || c.ToA.Throughput.Median <= 0 {
		t.Errorf("got %+v", c)
	}
}

// Each server runs without and with its crowd, one after the other.
func TestCompareWithBaseline(t *testing.T) {
	a, b := thisResponder(t), thisResponder(t)
	a.Name, b.Name = "a", "b"
	var turns []string
	c, err := Compare(t.Context(), CompareOptions{
		A: a, B: b, Rounds: 2,
		Load:         Options{Ops: 20, Idle: 5},
		Baseline:     &Options{Ops: 10},
		BaselineName: "nobody",
		Progress:     func(server string, _ Result) { turns = append(turns, server) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(turns, "; "); got != "a, baseline; a; b, baseline; b; a, baseline; a; b, baseline; b" {
		t.Errorf("turns %q", got)
	}
	for _, s := range []Side{c.A, c.B} {
		if s.Baseline == nil || len(s.Runs) != 2 || len(s.Baseline.Runs) != 2 {
			t.Fatalf("side %+v", s)
		}
		if n, base := s.Runs[0].Commands, s.Baseline.Runs[0].Commands; n != 60 || base != 30 {
			t.Errorf("%d commands, %d in the baseline", n, base)
		}
		if s.ToBaseline.Throughput.Median <= 0 {
			t.Errorf("ratios %+v", s.ToBaseline)
		}
	}
	if c.Baseline != "nobody" || c.BaselineLoad.Idle != 0 || c.Load.Idle != 5 {
		t.Errorf("loads %+v and %+v", c.BaselineLoad, c.Load)
	}
}

// A server that cannot gather the crowd in time is left out; the other is not.
func TestServerTooSlowForTheCrowd(t *testing.T) {
	fast, slow := thisResponder(t), thisResponder(t)
	silent := fakeServer(func(_ *wire.Command, out []byte) []byte { return out[:0] }).start(t)
	slow.Addr = silent // the process starts, and somebody else is talked to
	o := CompareOptions{A: slow, B: fast, Load: Options{Ops: 10, Occupied: 3}}
	c, err := o.comparison()
	if err != nil {
		t.Fatal(err)
	}
	all := o.entrants(&c)
	all[0].load.SetupLimit = 50 * time.Millisecond
	for range 2 {
		for i := range all {
			if err := all[i].run(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.sum()
	if want := "load: 0 of 3 tubes got their job in 50ms: " + ErrTooSlow.Error(); c.A.LeftOut != want || len(c.A.Runs) != 0 {
		t.Errorf("side %+v, want it left out because %q", c.A, want)
	}
	if c.B.LeftOut != "" || len(c.B.Runs) != 2 {
		t.Errorf("side %+v", c.B)
	}
	if c.ToA != (Ratios{}) {
		t.Errorf("ratios to nothing: %+v", c.ToA)
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
		p, err := s.Start(t.Context())
		if err == nil {
			p.Stop()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", s.Command, err, want)
		}
	}
}

func TestServerIsCleanedUp(t *testing.T) {
	s := thisResponder(t)
	s.Command = append(s.Command, "{dir}")
	p, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.dir); err != nil {
		t.Error(err)
	}
	p.Stop()
	if _, err := os.Stat(p.dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
	if readUsage(p.PID).ok {
		t.Error("the process still runs")
	}
}

func TestRatiosAreOfPairs(t *testing.T) {
	c := comparison()
	if want := (Ratio{Median: 2, Min: 1, Max: 3}); c.ToA.Throughput != want {
		t.Errorf("throughput ratio %+v, want %+v", c.ToA.Throughput, want)
	}
	if want := (Ratio{Median: 0.5, Min: 0.5, Max: 1}); c.ToA.P50 != want || c.ToA.CPUPerCommand != want {
		t.Errorf("p50 ratio %+v, CPU ratio %+v, want %+v", c.ToA.P50, c.ToA.CPUPerCommand, want)
	}
	if want := (Ratio{Median: 0.9, Min: 0.5, Max: 1}); c.ToResponder.Throughput != want {
		t.Errorf("throughput ratio to the responder %+v, want %+v", c.ToResponder.Throughput, want)
	}
	if want := (Ratio{Median: 1, Min: 1, Max: 2}); c.ToResponder.CPUPerCommand != want {
		t.Errorf("CPU ratio to the responder %+v, want %+v", c.ToResponder.CPUPerCommand, want)
	}
	if c.A.Throughput != 100_000 || c.B.Throughput != 200_000 {
		t.Errorf("medians %v and %v", c.A.Throughput, c.B.Throughput)
	}
	if want := (Ratio{Median: 0.95, Min: 0.9, Max: 1}); crowded().B.ToBaseline.Throughput != want {
		t.Errorf("ratio to the baseline %+v, want %+v", crowded().B.ToBaseline.Throughput, want)
	}
}

func TestRatioString(t *testing.T) {
	for want, r := range map[string]Ratio{
		"-":                    {},
		"0.004 (0.003..0.10)":  {0.0041, 0.0026, 0.104},
		"1.28 (0.98..12.3)":    {1.278, 0.98, 12.34},
		"254.9 (254.9..254.9)": {254.9, 254.9, 254.9},
	} {
		if got := r.String(); got != want {
			t.Errorf("%+v is written %s, want %s", r, got, want)
		}
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
