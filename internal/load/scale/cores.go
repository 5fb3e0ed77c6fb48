package scale

import (
	"context"
	"fmt"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/load"
)

// cores compares the server with itself: one processor, and two.
var cores = experiment{
	name: "cores",
	title: func(*Options) string {
		return "processors that run Go code: one, and two"
	},
	figures: coresFigures(),
	sides: func(b load.Server) (one, two load.Server) {
		return withProcessors(b, 1), withProcessors(b, 2)
	},
	trial: func(ctx context.Context, t *trial) error {
		for _, l := range coresLoads {
			o := l.load
			o.Addr, o.PID, o.Duration = t.Addr, t.PID, t.Duration
			r, err := load.Run(ctx, o)
			if err != nil {
				return err
			}
			t.set("throughput, "+l.name, r.Throughput)
			t.setTime("p50, "+l.name, r.Latency.P50)
			t.setTime("p99, "+l.name, r.Latency.P99)
			if r.Server != nil {
				t.setTime("CPU per command, "+l.name, r.Server.CPUPerCommand)
			}
		}
		return nil
	},
}

var coresLoads = []struct {
	name string
	load load.Options
}{
	{"50 connections", load.Options{Connections: 50}},
	{"8 connections, 64 in flight", load.Options{Connections: 8, InFlight: 64}},
}

func coresFigures() (all []figure) {
	for _, l := range coresLoads {
		all = append(all,
			figure{name: "throughput, " + l.name, unit: PerSecond},
			figure{name: "CPU per command, " + l.name, unit: Nanoseconds},
			figure{name: "p50, " + l.name, unit: Nanoseconds},
			figure{name: "p99, " + l.name, unit: Nanoseconds})
	}
	return all
}

func withProcessors(s load.Server, n int) load.Server {
	s.Name = fmt.Sprintf("%s, GOMAXPROCS=%d", s.DisplayName(), n)
	s.Env = append(slices.Clip(s.Env), fmt.Sprintf("GOMAXPROCS=%d", n))
	return s
}
