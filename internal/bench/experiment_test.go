package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// small makes each experiment a matter of a second or two.
func small() *Options {
	return &Options{Rounds: 1, Duration: 300 * time.Millisecond, Jobs: 3000, Tubes: 300, Settle: time.Millisecond}
}

// Each experiment runs, on both kinds of servers, and finds out all its figures.
func TestTrials(t *testing.T) {
	withDir := func(s Server) Server {
		s.Command = append(s.Command, "-b", "{dir}")
		return s
	}
	crowd := func(*Options) Experiment {
		return crowdExperiment("crowd", load.Options{Ops: 10}, load.Options{Ops: 10, Idle: 5, Occupied: 5})
	}
	restart := func(o *Options) Experiment { return Restart(o, 0) }
	for _, make := range append(Experiments, crowd, restart) {
		o := small()
		e := make(o)
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel() // due sleeps most of the time
			values := runTrial(t, &e, withDir(beanpole()), false)
			if n := values[dueWrong]; n != 0 {
				t.Errorf("%v jobs were served out of order", n)
			}
			for _, f := range e.figures {
				v, ok := values[f.Name]
				if !ok && !mayLack(f.Name) || v < 0 && f.Name != memoryEach {
					t.Errorf("%s is %v, known %v", f.Name, v, ok)
				}
				delete(values, f.Name)
			}
			if len(values) != 0 {
				t.Errorf("values of no figure: %v", values)
			}
		})
		if !e.NeedsA() {
			continue
		}
		t.Run(e.Name+" on beanstalkd", func(t *testing.T) {
			t.Parallel()
			values := runTrial(t, &e, withDir(beanstalkd(t)), true)
			for _, f := range e.figures {
				_, ok := values[f.Name]
				if ofCollector := f.Name == gcCount || f.Name == gcPause; ok == ofCollector && !mayLack(f.Name) {
					t.Errorf("%s is known: %v", f.Name, ok)
				}
			}
		})
	}
}

// mayLack reports whether a figure may be unknown after a short run: the kernel counts
// processor time in steps of 10 ms, and on a busy machine a run may be over before its
// first reply.
func mayLack(figure string) bool {
	return figure == cpuPerCommand || strings.HasSuffix(figure, slowdown)
}

func runTrial(t *testing.T, e *Experiment, s Server, isA bool) map[string]float64 {
	t.Helper()
	tr := &trial{Options: small(), server: s, isA: isA, values: make(map[string]float64)}
	if e.Name == "backlog" && !isA {
		tr.Jobs = 100_000 // so that the garbage collector has something to do
	}
	if err := tr.run(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return tr.values
}

func TestFigureNamesAreUnique(t *testing.T) {
	o := small()
	all := []Experiment{Restart(o, 0)}
	for _, make := range Experiments {
		all = append(all, make(o))
	}
	for _, suite := range Suites {
		all = append(all, suite(o)...)
	}
	for _, e := range all {
		seen := make(map[string]bool)
		for _, f := range e.figures {
			if seen[f.Name] {
				t.Errorf("%s has two figures %q", e.Name, f.Name)
			}
			seen[f.Name] = true
		}
	}
}

// In each round a load runs on the responder, on A and on B; the responder takes
// a job that is too large for the others.
func TestRun(t *testing.T) {
	var turns []string
	o := Options{
		A: beanpole(), B: beanpole(), Responder: responder(), Rounds: 2,
		Progress: func(_, server string, round int) { turns = append(turns, fmt.Sprint(server, round)) },
	}
	o.A.Name, o.B.Name = "a", "b"
	all := []Experiment{
		Load(load.Options{Connections: 2, InFlight: 4, Ops: 200}),
		loadExperiment("fails", load.Options{Ops: 1, BodySize: 1 << 20}),
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
	o := small()
	o.A = Server{Name: "broken", Command: []string{"sh", "-c", "exit 3"}}
	o.B = beanpole()
	reports, err := Run(t.Context(), *o, []Experiment{memory(o), cores(o)})
	if err == nil || !strings.Contains(err.Error(), "bench: memory: broken: bench: ") {
		t.Errorf("error %v", err)
	}
	if len(reports) != 1 || reports[0].Name != "cores" || !strings.HasSuffix(reports[0].Servers[sideB], "GOMAXPROCS=2") {
		t.Errorf("reports %+v", reports)
	}
}

// A server that is too slow is left out of the rounds that follow; the others are
// not.
func TestServerThatIsTooSlow(t *testing.T) {
	runs := 0
	e := Experiment{
		Name:    "patience",
		figures: []Figure{{Name: "figure", Unit: Number}},
		cold:    true,
		trial: func(_ context.Context, t *trial) error {
			runs++
			if t.isA {
				return fmt.Errorf("not today: %w", load.ErrTooSlow)
			}
			t.set("figure", 1)
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

// A server to compare with that crashes is started again, and the report says so. The
// other one may not crash.
func TestServerThatCrashes(t *testing.T) {
	crashes := 2
	e := Experiment{
		Name:    "life",
		figures: []Figure{{Name: "figure", Unit: Number}},
		trial: func(ctx context.Context, t *trial) error {
			if crashes > 0 {
				crashes--
				t.set("figure", 2) // of no use
				if err := syscall.Kill(t.PID, syscall.SIGKILL); err != nil {
					return err
				}
				return errors.New("connection reset by peer")
			}
			t.set("figure", 1)
			return nil
		},
	}
	s := responder()
	r, err := e.run(t.Context(), &Options{A: s, B: s, Rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Figures[0].Servers[sideA].Values; r.Crashes != 2 || len(got) != 1 || *got[0] != 1 {
		t.Errorf("%d crashes, values %v", r.Crashes, got)
	}
	if got := r.leftOut(); got != "responder crashed in 2 trials, and was started again\n" {
		t.Errorf("the report says %q", got)
	}
	crashes = 1
	other := Experiment{Name: e.Name, figures: e.figures, trial: func(ctx context.Context, t *trial) error {
		if t.isA {
			return nil
		}
		return e.trial(ctx, t)
	}}
	if _, err := other.run(t.Context(), &Options{A: s, B: s, Rounds: 1}); !errors.Is(err, errDied) || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("error %v, want that the server is gone, and of what", err)
	}
	crashes = maxCrashes + 1
	if _, err := e.run(t.Context(), &Options{A: s, B: s, Rounds: 1}); !errors.Is(err, errDied) {
		t.Errorf("error %v after too many crashes", err)
	}
}

// A server that has no room for the jobs fails the experiment.
func TestJobsThatAreRefused(t *testing.T) {
	s := beanpole()
	s.Command = append(s.Command, "-z", "63")
	e := memory(small())
	tr := &trial{Options: small(), server: s, values: make(map[string]float64)}
	if err := tr.run(t.Context(), &e); err == nil || !strings.Contains(err.Error(), "unexpected reply to put") {
		t.Errorf("error %v", err)
	}
}

// A server that forgets its jobs in a crash has not restarted, however soon it
// answers.
func TestRestartWithoutTheJobs(t *testing.T) {
	o := small()
	e := Restart(o, 0)
	tr := &trial{Options: o, server: beanpole(), values: make(map[string]float64)}
	err := tr.run(t.Context(), &e)
	if err == nil || !strings.Contains(err.Error(), "look for the jobs after the restart") {
		t.Errorf("error %v", err)
	}
}

func TestSelect(t *testing.T) {
	o := small()
	if _, err := Select(o, []string{"memory", "alchemy"}); err == nil ||
		!strings.Contains(err.Error(), `no experiment is called "alchemy"; there are: memory, backlog`) {
		t.Errorf("error %v", err)
	}
	some, err := Select(o, []string{"cores", "memory"})
	if err != nil || len(some) != 2 || some[0].Name != "memory" || !some[0].NeedsA() || some[1].NeedsA() {
		t.Errorf("selected %+v, error %v", some, err)
	}
	if all, err := Select(o, nil); err != nil || len(all) != len(Experiments) {
		t.Errorf("%d experiments, error %v", len(all), err)
	}
}

func TestCancelEndsTheServers(t *testing.T) {
	errGone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	var left string
	e := Experiment{Name: "patience", trial: func(ctx context.Context, t *trial) error {
		left = fmt.Sprintf("/proc/%d", t.PID)
		cancel(errGone)
		return sleep(ctx, time.Hour)
	}}
	if _, err := Run(ctx, Options{A: beanpole(), B: beanpole()}, []Experiment{e}); !errors.Is(err, errGone) {
		t.Errorf("error %v, want the context's cause", err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("the process still runs: %v", err)
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

// A server has a directory for as long as it runs; what it writes can be read
// meanwhile, and its environment be added to.
func TestServer(t *testing.T) {
	s := beanpole()
	heard := new(tail)
	s.Env, s.Output = []string{"BEANPOLE_BENCH_TEST=is heard"}, heard
	s.Command = append([]string{"sh", "-c", `echo "$BEANPOLE_BENCH_TEST"; exec "$0" "$@" 2>&1`}, s.Command...)
	s.Command = append(s.Command, "-b", "{dir}")
	p, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if files, err := filepath.Glob(filepath.Join(p.dir, "*")); err != nil || len(files) == 0 {
		t.Errorf("files %v in the directory, error %v", files, err)
	}
	if u, ok := load.UsageOf(p.PID); !ok || u.PID != p.PID || u.RSS <= 0 {
		t.Errorf("usage %+v", u)
	}
	p.Stop()
	if got := heard.quoted(); !strings.HasPrefix(got, "; it said: is heard") {
		t.Errorf("output %q", got)
	}
	if p.Died() == nil {
		t.Error("a process that was stopped is said to live")
	}
	if _, err := os.Stat(p.dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
}

func TestDialogEndsWithItsServer(t *testing.T) {
	s := responder()
	p, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	d, err := p.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if r, err := d.Receive(); err == nil {
		t.Errorf("a reply from a dead server: %v", r.Kind)
	}
}

func TestBeside(t *testing.T) {
	errWork, errDisturb := errors.New("work"), errors.New("disturbance")
	untilDone := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	returns := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	for _, tt := range []struct {
		name          string
		disturb, work func(context.Context) error
		want          error
	}{
		{"the work ends the disturbance", untilDone, returns(nil), nil},
		{"the work fails", untilDone, returns(errWork), errWork},
		{"the disturbance fails and ends the work", returns(errDisturb), untilDone, errDisturb},
	} {
		if err := beside(t.Context(), tt.disturb, tt.work); err != tt.want {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestAnswersToObserversAreChecked(t *testing.T) {
	list := wire.AppendOK(nil, []byte("---\n- default\n- tube-0\n- tube-1\n- tube-2\n"))
	for _, tt := range []struct {
		check func([]byte, int) error
		reply []byte
		tubes int
		want  string // in the error; empty: none
	}{
		{checkTubeList, list, 3, ""},
		{checkTubeList, list, 4, `tube "tube-3" is not in the list of 4 names`},
		{checkTubeList, wire.AppendOK(nil, []byte("tube-0\n")), 1, wire.ErrReply.Error()},
		{checkStats, wire.AppendOK(nil, []byte("---\ncurrent-tubes: 31\n")), 30, ""},
		{checkStats, wire.AppendOK(nil, []byte("---\ncurrent-tubes: 29\n")), 30, `current-tubes is "29" where 30 were made`},
		{checkStats, wire.AppendOK(nil, []byte("---\n")), 30, `current-tubes is ""`},
		{checkStats, wire.AppendOK(nil, []byte("current-tubes")), 30, wire.ErrReply.Error()},
	} {
		var r wire.Reply
		if n, err := wire.ParseReply(tt.reply, &r); n == 0 || err != nil {
			t.Fatal(n, err)
		}
		err := tt.check(r.Body, tt.tubes)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want %q", r.Body, err, tt.want)
		}
	}
}
