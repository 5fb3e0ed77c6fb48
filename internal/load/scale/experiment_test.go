package scale

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// small makes each experiment a matter of a second or two.
func small() *Options {
	return &Options{Rounds: 1, Duration: 100 * time.Millisecond, Jobs: 3000, Tubes: 300, Settle: time.Millisecond}
}

// Each experiment runs, on both kinds of servers, and finds out all its figures.
func TestTrials(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory and processor time are known on Linux only")
	}
	for i := range experiments {
		e := &experiments[i]
		t.Run(e.name, func(t *testing.T) {
			t.Parallel() // due sleeps most of the time
			values := runTrial(t, e, beanpole(), false)
			for _, f := range e.figures {
				if v, ok := values[f.name]; !ok || v < 0 {
					t.Errorf("%s is %v, known %v", f.name, v, ok)
				}
			}
			if n := values[dueWrong]; n != 0 {
				t.Errorf("%v jobs were served out of order", n)
			}
			if len(values) != len(e.figures) {
				t.Errorf("%d values for %d figures: %v", len(values), len(e.figures), values)
			}
		})
		if e.sides == nil {
			t.Run(e.name+" on beanstalkd", func(t *testing.T) {
				t.Parallel()
				values := runTrial(t, e, beanstalkd(t), true)
				for _, f := range e.figures {
					_, ok := values[f.name]
					if ofCollector := f.name == gcCount || f.name == gcPause; ok == ofCollector {
						t.Errorf("%s is known: %v", f.name, ok)
					}
				}
				if n := values[dueWrong]; n != 0 { // the judge of the order is not stricter than the original
					t.Errorf("%v jobs were served out of order", n)
				}
			})
		}
	}
}

func runTrial(t *testing.T, e *experiment, s load.Server, isA bool) map[string]float64 {
	t.Helper()
	tr := &trial{Options: small(), isA: isA, values: make(map[string]float64)}
	if e.name == "backlog" && !isA {
		tr.Jobs = 100_000 // so that the garbage collector has something to do
	}
	if err := tr.run(t.Context(), e, s); err != nil {
		t.Fatal(err)
	}
	return tr.values
}

func TestFigureNamesAreUnique(t *testing.T) {
	for i := range experiments {
		seen := make(map[string]bool)
		for _, f := range experiments[i].figures {
			if seen[f.name] {
				t.Errorf("%s has two figures %q", experiments[i].name, f.name)
			}
			seen[f.name] = true
		}
	}
}

func TestRun(t *testing.T) {
	o := small()
	o.A, o.B = beanpole(), beanpole()
	o.A.Name, o.B.Name = "a", "b"
	o.Rounds, o.Only = 2, []string{"memory"}
	var turns []string
	o.Progress = func(experiment, server string, round int) {
		turns = append(turns, fmt.Sprint(experiment, " ", server, round))
	}
	reports, err := Run(t.Context(), *o)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(turns, ", "), "memory a1, memory b1, memory a2, memory b2"; got != want {
		t.Errorf("turns %q, want %q", got, want)
	}
	if len(reports) != 1 || reports[0].Name != "memory" || reports[0].A != "a" || reports[0].B != "b" {
		t.Fatalf("reports %+v", reports)
	}
	for _, f := range reports[0].Figures {
		if len(f.A.Values) != 2 || len(f.B.Values) != 2 {
			t.Errorf("%s has %d and %d values, want 2 and 2", f.Name, len(f.A.Values), len(f.B.Values))
		}
	}
}

// A failure names the experiment and the server, and the other experiments are run.
func TestRunGoesOnAfterAFailure(t *testing.T) {
	o := small()
	o.A = load.Server{Name: "broken", Command: []string{"sh", "-c", "exit 3"}}
	o.B = beanpole()
	o.Only = []string{"memory", "cores"}
	reports, err := Run(t.Context(), *o)
	if err == nil || !strings.Contains(err.Error(), "scale: memory: broken: load: ") {
		t.Errorf("error %v", err)
	}
	if len(reports) != 1 || reports[0].Name != "cores" || !strings.HasSuffix(reports[0].B, "GOMAXPROCS=2") {
		t.Errorf("reports %+v", reports)
	}
}

// A server that has no room for the jobs fails the experiment.
func TestJobsThatAreRefused(t *testing.T) {
	s := beanpole()
	s.Command = append(s.Command, "-z", "63")
	tr := &trial{Options: small(), values: make(map[string]float64)}
	err := tr.run(t.Context(), &memory, s)
	if err == nil || !strings.Contains(err.Error(), "unexpected reply to put") {
		t.Errorf("error %v", err)
	}
}

func TestUnknownExperiment(t *testing.T) {
	_, err := Run(t.Context(), Options{Only: []string{"memory", "alchemy"}})
	if err == nil || !strings.Contains(err.Error(), `no experiment is called "alchemy"; there are: memory, backlog`) {
		t.Errorf("error %v", err)
	}
}

func TestCancelEndsTheExperiment(t *testing.T) {
	errGone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	o := small()
	o.A, o.B = beanpole(), beanpole()
	o.Only, o.Settle = []string{"memory"}, time.Hour
	time.AfterFunc(100*time.Millisecond, func() { cancel(errGone) })
	if _, err := Run(ctx, *o); !errors.Is(err, errGone) {
		t.Errorf("error %v, want the context's cause", err)
	}
}

func TestNeedsA(t *testing.T) {
	for want, only := range map[string][]string{"": {"cores"}, "due": {"cores", "due"}, "memory": nil} {
		o := Options{Only: only}
		if got := o.NeedsA(); got != want {
			t.Errorf("%v needs A for %q, want %q", only, got, want)
		}
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
