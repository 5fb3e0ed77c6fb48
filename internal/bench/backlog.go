package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/beanpole-mq/beanpole/internal/load"
)

const (
	backlogJobs = 10_000_000
	backlogTube = "backlog"

	emptyQueue = ", empty queue"
	behindJobs = ", jobs behind"
	slowdown   = ", slower with jobs behind"

	gcCount = "garbage collections, filling included"
	gcPause = "longest pause of the garbage collector"
)

var backlogCommands = []string{"put", "reserve"}

// backlogQuantiles are those of interest, by name.
var backlogQuantiles = []struct {
	name string
	of   func(load.Latency) time.Duration
}{
	{p50, func(l load.Latency) time.Duration { return l.P50 }},
	{p99, func(l load.Latency) time.Duration { return l.P99 }},
	{p999, func(l load.Latency) time.Duration { return l.P999 }},
}

// backlog times put and reserve in an empty queue, and with a long one.
func backlog(o *Options) Experiment {
	e := Experiment{
		Name:    "backlog",
		Title:   fmt.Sprintf("%d connections that put, reserve and delete, %s jobs behind", interactiveClients, count(o.jobs(backlogJobs))),
		gctrace: true,
		trial:   backlogTrial,
	}
	for _, c := range backlogCommands {
		for _, q := range backlogQuantiles {
			e.figures = append(e.figures,
				Figure{Name: c + " " + q.name + emptyQueue, Unit: Nanoseconds},
				Figure{Name: c + " " + q.name + behindJobs, Unit: Nanoseconds},
				Figure{Name: c + " " + q.name + slowdown, Unit: Times, Targets: []Target{{Of: value, Limit: 2}}})
		}
	}
	e.figures = append(e.figures,
		Figure{Name: gcCount, Unit: Number},
		Figure{Name: gcPause, Unit: Nanoseconds, Targets: []Target{{Of: value, Limit: 1e6}}})
	return e
}

func backlogTrial(ctx context.Context, t *trial) error {
	o := t.clients()
	o.Prefix, o.ByCommand = backlogTube, true
	empty, err := load.Run(ctx, o)
	if err != nil {
		return err
	}
	if err := t.fill(ctx, backlogTube, t.jobs(backlogJobs)); err != nil {
		return err
	}
	behind, err := load.Run(ctx, o)
	if err != nil {
		return err
	}
	for _, c := range backlogCommands {
		for _, q := range backlogQuantiles {
			before, after := q.of(empty.ByCommand[c]), q.of(behind.ByCommand[c])
			t.setTime(c+" "+q.name+emptyQueue, before)
			t.setTime(c+" "+q.name+behindJobs, after)
			if before > 0 {
				t.set(c+" "+q.name+slowdown, float64(after)/float64(before))
			}
		}
	}
	if collections, pause := t.gc.report(); collections > 0 {
		t.set(gcCount, float64(collections))
		t.setTime(gcPause, pause)
	}
	return nil
}
