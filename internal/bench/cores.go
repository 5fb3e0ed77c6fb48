package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/load"
)

var coresLoads = []struct {
	name string
	load load.Options
}{
	{", 50 connections", load.Options{Connections: 50}},
	{", 8 connections, 64 in flight", load.Options{Connections: 8, InFlight: 64}},
}

// cores compares the server with itself: one processor, and two.
func cores(o *Options) Experiment {
	e := Experiment{
		Name:    "cores",
		Title:   "processors that run Go code: one, and two",
		servers: []Server{o.B.withProcessors(1), o.B.withProcessors(2)},
		trial: func(ctx context.Context, t *trial) error {
			for _, l := range coresLoads {
				o := l.load
				o.Addr, o.PID, o.Duration = t.Addr, t.PID, t.Duration
				r, err := load.Run(ctx, o)
				if err != nil {
					return err
				}
				t.set(throughput+l.name, r.Throughput)
				t.setTime(p50+l.name, r.Latency.P50)
				t.setTime(p99+l.name, r.Latency.P99)
				if r.Server != nil {
					t.setTime(cpuPerCommand+l.name, r.Server.CPUPerCommand)
				}
			}
			return nil
		},
	}
	for _, l := range coresLoads {
		e.figures = append(e.figures,
			Figure{Name: throughput + l.name, Unit: PerSecond},
			Figure{Name: cpuPerCommand + l.name, Unit: Nanoseconds},
			Figure{Name: p50 + l.name, Unit: Nanoseconds},
			Figure{Name: p99 + l.name, Unit: Nanoseconds})
	}
	return e
}

func (s Server) withProcessors(n int) Server {
	s.Name = fmt.Sprintf("%s, GOMAXPROCS=%d", s.DisplayName(), n)
	s.Env = append(slices.Clip(s.Env), fmt.Sprintf("GOMAXPROCS=%d", n))
	return s
}
