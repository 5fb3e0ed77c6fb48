package scale

import (
	"context"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/load"
)

// backlog times put and reserve in an empty queue, and with a long one.
var backlog = experiment{
	name: "backlog",
	title: func(o *Options) string {
		return fmt.Sprintf("%d connections that put, reserve and delete, %s jobs behind", interactiveClients, count(o.jobs(backlogJobs)))
	},
	figures: backlogFigures(),
	gctrace: true,
	trial: func(ctx context.Context, t *trial) error {
		empty, err := t.timeCommands(ctx)
		if err != nil {
			return err
		}
		if err := t.fill(ctx, backlogTube, t.jobs(backlogJobs)); err != nil {
			return err
		}
		behind, err := t.timeCommands(ctx)
		if err != nil {
			return err
		}
		for _, c := range backlogCommands {
			e, b := quantiles(empty.ByCommand[c]), quantiles(behind.ByCommand[c])
			for i, q := range quantileNames {
				t.set(c+" "+q+emptyQueue, e[i])
				t.set(c+" "+q+behindJobs, b[i])
				if e[i] > 0 {
					t.set(c+" "+q+slowdown, b[i]/e[i])
				}
			}
		}
		if collections, longest := t.gc.report(); collections > 0 {
			t.set(gcCount, float64(collections))
			t.setTime(gcPause, longest)
		}
		return nil
	},
}

const (
	backlogJobs = 10_000_000
	backlogTube = "backlog"

	emptyQueue = ", empty queue"
	behindJobs = ", jobs behind"
	slowdown   = ", slower with jobs behind"

	gcCount = "garbage collections, filling included"
	gcPause = "longest pause of the garbage collector"
)

var (
	backlogCommands = []string{"put", "reserve"}
	quantileNames   = []string{"p50", "p99", "p99.9"}
)

// quantiles are those of quantileNames.
func quantiles(l load.Latency) [3]float64 {
	return [3]float64{float64(l.P50), float64(l.P99), float64(l.P999)}
}

func backlogFigures() (all []figure) {
	for _, c := range backlogCommands {
		for _, q := range quantileNames {
			all = append(all,
				figure{name: c + " " + q + emptyQueue, unit: Nanoseconds},
				figure{name: c + " " + q + behindJobs, unit: Nanoseconds},
				figure{name: c + " " + q + slowdown, unit: Times, target: atMost(2)})
		}
	}
	return append(all,
		figure{name: gcCount, unit: Number},
		figure{name: gcPause, unit: Nanoseconds, target: atMost(1e6)})
}

// timeCommands times each kind of command in the tube of the backlog.
func (t *trial) timeCommands(ctx context.Context) (load.Result, error) {
	o := t.clients()
	o.Prefix, o.ByCommand = backlogTube, true
	return load.Run(ctx, o)
}
