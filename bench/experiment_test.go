package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/client"
)

// small makes each experiment a matter of a second or two.
func small() *Options {
	return &Options{Rounds: 1, Duration: 300 * time.Millisecond, Jobs: 3000, Settle: time.Millisecond}
}

// Each experiment runs, on both kinds of servers, and finds out all its figures.
func TestTrials(t *testing.T) {
	t.Parallel()
	withDir := func(s Server) Server {
		s.Command = append(s.Command, "-b", "{dir}")
		return s
	}
	all := []Experiment{memory(small()), restart(small()),
		crowdExperiment(row{name: "crowd", load: load.Options{Ops: 10, Idle: 5, Occupied: 5}})}
	for _, e := range all {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			values := runTrial(t, &e, withDir(beanpole()), sideB)
			for name, v := range values {
				if math.IsNaN(v) && !mayLack(name) || v < 0 && name != memoryEach {
					t.Errorf("%s is %v", name, v)
				}
			}
		})
		t.Run(e.Name+" on beanstalkd", func(t *testing.T) {
			t.Parallel()
			for name, v := range runTrial(t, &e, withDir(beanstalkd(t)), sideA) {
				if math.IsNaN(v) && !mayLack(name) {
					t.Errorf("%s is %v", name, v)
				}
			}
		})
	}
}

// mayLack reports whether a figure may be unknown after a short run: the kernel counts
// processor time in steps of 10 ms.
func mayLack(figure string) bool { return figure == cpuPerCommand }

// runTrial returns what a trial has measured, by the names of the figures.
func runTrial(t *testing.T, e *Experiment, s Server, side int) map[string]float64 {
	t.Helper()
	all, err := e.try(t.Context(), small(), s, side)
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, m := range all {
		if _, ok := values[m.figure]; ok {
			t.Errorf("two figures %q", m.figure)
		}
		values[m.figure] = m.value
	}
	if len(values) == 0 {
		t.Error("nothing was measured")
	}
	return values
}

// In each round a load runs on the responder, on A and on B; the responder takes
// a job that is too large for the others.
func TestRun(t *testing.T) {
	t.Parallel()
	var turns []string
	o := Options{
		A: beanpole(), B: beanpole(), Responder: responder(), Rounds: 2,
		Progress: func(_, server string, round int) { turns = append(turns, fmt.Sprint(server, round)) },
	}
	o.A.Name, o.B.Name = "a", "b"
	all := []Experiment{
		Load(load.Options{Connections: 2, InFlight: 4, Ops: 200}),
		loadExperiment(row{name: "fails", load: load.Options{Ops: 1, BodySize: 1 << 20}}),
	}
	reports, err := Run(t.Context(), o, all)
	if err == nil || !strings.HasPrefix(err.Error(), "bench: fails: a: load: unexpected reply to put") {
		t.Errorf("error %v", err)
	}
	if got, want := strings.Join(turns, " "), "responder1 a1 b1 responder2 a2 b2 responder1 a1"; got != want {
		t.Errorf("turns %q, want %q", got, want)
	}
	if len(reports) != 1 || reports[0].Name != "put-reserve-delete, 2 connections, 4 in flight, 64-byte bodies" {
		t.Fatalf("reports %+v", reports)
	}
	for _, f := range reports[0].Figures {
		for i, s := range f.Servers {
			if mayLack(f.Name) {
				continue
			}
			if s.Spread == nil || len(s.Values) != 2 || s.Min < 0 || s.Median < s.Min || s.Max < s.Median {
				t.Errorf("%s of %s: %+v", f.Name, reports[0].Servers[i], s)
			}
		}
	}
	if f := reports[0].figure(throughput); f.ToA.Spread == nil || f.ToResponder.Spread == nil {
		t.Errorf("no ratios: %+v", f)
	}
}

// A failure names the experiment and the server, and the other experiments are run.
func TestRunGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	o := small()
	idle := Experiment{Name: "idle", trial: func(context.Context, *trial) error { return nil }}
	o.A = Server{Name: "broken", Command: []string{"sh", "-c", "exit 3"}}
	o.B = beanpole()
	reports, err := Run(t.Context(), *o, []Experiment{memory(o), idle})
	if err == nil || !strings.Contains(err.Error(), "bench: memory: broken: bench: ") {
		t.Errorf("error %v", err)
	}
	if len(reports) != 1 || reports[0].Name != "idle" {
		t.Errorf("reports %+v", reports)
	}
}

// A server that is too slow is left out of the rounds that follow; the others are
// not.
func TestServerThatIsTooSlow(t *testing.T) {
	runs := 0
	e := Experiment{
		Name: "patience",
		trial: func(_ context.Context, t *trial) error {
			runs++
			if t.isA {
				return fmt.Errorf("not today: %w", load.ErrTooSlow)
			}
			t.set("figure", load.Times, 1)
			return nil
		},
	}
	r, err := e.run(t.Context(), &Options{A: Server{Name: "slow"}, B: Server{Name: "fast"}, Rounds: 3})
	if err != nil {
		t.Fatal(err)
	}
	if want := "not today: " + load.ErrTooSlow.Error(); r.LeftOut[sideA] != want || r.LeftOut[sideB] != "" {
		t.Errorf("left out %q, want %q", r.LeftOut, want)
	}
	f := &r.Figures[0]
	if runs != 4 || f.Servers[sideA].Spread != nil || len(f.Servers[sideB].Values) != 3 {
		t.Errorf("%d trials, figure %+v", runs, f)
	}
}

// A server that has no room for the jobs fails the experiment.
func TestJobsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := beanpole()
	s.Command = append(s.Command, "-z", "63")
	e := memory(small())
	if _, err := e.try(t.Context(), small(), s, sideB); err == nil || !strings.Contains(err.Error(), "unexpected reply to put") {
		t.Errorf("error %v", err)
	}
}

// A server that forgets its jobs in a crash has not restarted, however soon it
// answers.
func TestRestartWithoutTheJobs(t *testing.T) {
	t.Parallel()
	e := restart(small())
	_, err := e.try(t.Context(), small(), beanpole(), sideB)
	if err == nil || !strings.Contains(err.Error(), "look for the jobs after the restart") {
		t.Errorf("error %v", err)
	}
}

func TestCancelEndsTheServers(t *testing.T) {
	t.Parallel()
	errGone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	var left string
	e := Experiment{Name: "patience", trial: func(ctx context.Context, t *trial) error {
		return t.start(ctx, func(ctx context.Context) error {
			left = fmt.Sprintf("/proc/%d", t.PID)
			cancel(errGone)
			return sleep(ctx, time.Hour)
		})
	}}
	if _, err := Run(ctx, Options{A: beanpole(), B: beanpole(), Rounds: 1}, []Experiment{e}); !errors.Is(err, errGone) {
		t.Errorf("error %v, want the context's cause", err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("the process still runs: %v", err)
	}
}

func TestServerThatDoesNotStart(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]Server{
		"without a command":            {},
		"executable file not found":    {Command: []string{"no-such-program"}},
		"did not start: exit status 3": {Command: []string{"sh", "-c", "echo no luck; exit 3"}},
		"; it said: no luck":           {Command: []string{"sh", "-c", "echo no luck; exit 3"}},
	} {
		p, err := s.Start(t.Context(), t.TempDir())
		if err == nil {
			p.Stop()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", s.Command, err, want)
		}
	}
}

// A server has a directory, and what it writes can be read meanwhile.
func TestServer(t *testing.T) {
	t.Parallel()
	s, dir := beanpole(), t.TempDir()
	s.Command = append([]string{"sh", "-c", `echo is heard; exec "$0" "$@" 2>&1`}, s.Command...)
	s.Command = append(s.Command, "-b", "{dir}")
	p, err := s.Start(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	c, err := client.Dial(t.Context(), p.Addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Ping(t.Context()); err != nil { // it listens before it has opened its journal
		t.Fatal(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) == 0 {
		t.Errorf("files %v in the directory, error %v", files, err)
	}
	if u := load.UsageOf(p.PID); u.RSS <= 0 {
		t.Errorf("usage %+v", u)
	}
	if got := p.Log.String(); !strings.HasPrefix(got, "is heard") {
		t.Errorf("output %q", got)
	}
	p.Kill()
	if err := p.explain(errors.New("lost")); !errors.Is(err, errDied) {
		t.Errorf("error %v of a process that was killed", err)
	}
}
