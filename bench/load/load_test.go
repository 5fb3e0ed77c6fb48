package load

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/beanpole-mq/beanpole/internal/test/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startResponder returns the address of a responder which stops when the test ends.
func startResponder(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Responder(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("responder: %v", err)
		}
	})
	return addr
}

// loads contains small runs with every mix and every kind of end. The field commands is
// the expected number of replies, or -1 if it depends on time.
var loads = []struct {
	name     string
	opt      Options
	commands int64
}{
	{"one at a time", Options{Ops: 100}, 300},
	{"connections share the jobs", Options{Connections: 7, Ops: 100}, 300},
	{"more connections than jobs", Options{Connections: 7, Ops: 3}, 9},
	{"pipelined", Options{Connections: 3, InFlight: 64, Ops: 1000}, 3000},
	{"odd window", Options{Connections: 2, InFlight: 3, Ops: 500}, 1500},
	{"empty bodies", Options{BodySize: -1, Ops: 10}, 30},
	{"large bodies", Options{Connections: 2, BodySize: 60_000, Ops: 20}, 60},
	{"large bodies, pipelined", Options{Connections: 2, BodySize: 8_000, InFlight: 8, Ops: 200}, 600},
	{"bodies with numbers", Options{Connections: 2, InFlight: 3, Backlog: 20, Body: "a%b%", Ops: 50}, 150},
	{"put", Options{Mix: Put, Connections: 2, InFlight: 8, Ops: 101}, 101},
	{"put and delete", Options{Mix: PutDelete, Connections: 3, InFlight: 4, Ops: 100}, 200},
	{"behind a backlog", Options{Backlog: 50, Ops: 10}, 30},
	{"for a while", Options{Connections: 2, InFlight: 4, Duration: 20 * time.Millisecond}, -1},
	{"with idle connections", Options{Idle: 40, Ops: 10}, 30},
	{"with occupied tubes", Options{Occupied: 150, Connections: 2, Ops: 10}, 30},
	{"drain", Options{Mix: Drain, Connections: 2, InFlight: 4, Backlog: 100}, 200},
}

// runLoads puts every load on the server at addr, each in separate tubes.
func runLoads(t *testing.T, addr string) {
	for i, tt := range loads {
		t.Run(tt.name, func(t *testing.T) {
			o := tt.opt
			o.Addr, o.PID = addr, os.Getpid()
			o.Tube = fmt.Sprintf("load-%d", i)
			r, err := Run(t.Context(), o)
			for err == nil && r.Commands == 0 && o.Duration > 0 { // on a busy machine, a short run can have no commands
				o.Duration *= 2
				r, err = Run(t.Context(), o)
			}
			if err != nil {
				t.Fatal(err)
			}
			checkResult(t, &r, tt.commands)
		})
	}
}

func checkResult(t *testing.T, r *Result, commands int64) {
	t.Helper()
	switch {
	case commands >= 0 && r.Commands != commands:
		t.Errorf("%d commands, want %d", r.Commands, commands)
	case r.Commands == 0:
		t.Error("no commands")
	}
	l := &r.Latency
	if l.Count != r.Commands {
		t.Errorf("%d commands timed of %d", l.Count, r.Commands)
	}
	if l.P50 > l.P90 || l.P90 > l.P99 || l.P99 > l.P999 || l.P999 > l.Max {
		t.Errorf("percentiles do not ascend: %+v", *l)
	}
	if r.Elapsed <= 0 || r.Throughput <= 0 {
		t.Errorf("elapsed %v, throughput %v", r.Elapsed, r.Throughput)
	}
	if r.PeakRSS == 0 {
		t.Error("no memory")
	}
}

func TestLoadsOnResponder(t *testing.T) {
	runLoads(t, startResponder(t))
}

func TestLoadsOnBeanstalkd(t *testing.T) {
	runLoads(t, conformance.Beanstalkd(t))
}

// The phases last as long as the options specify, in fake time.
func TestConduct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &run{opt: Options{Duration: time.Hour}, base: time.Now()}
		var seen []phase
		sp, err := r.conduct(t.Context(), func(context.Context) error {
			for _, at := range []time.Duration{3 * time.Minute, 30 * time.Minute, 33*time.Minute + 5*time.Second} {
				time.Sleep(at)
				seen = append(seen, r.inPhase())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(seen) != 3 || seen[0] != warming || seen[1] != measuring || seen[2] != stopping {
			t.Errorf("phases %v", seen)
		}
		if d := time.Duration(sp.to.at - sp.from.at); d != time.Hour || sp.whole {
			t.Errorf("measured %v, whole %v", d, sp.whole)
		}
	})
}
