package bench

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/beanpole-mq/beanpole/bench/load"
)

const (
	backlogJobs = 10_000_000

	emptyQueue  = ", empty queue"
	withBacklog = ", with a backlog"
	slowdown    = ", slower with a backlog"

	gcCount = "garbage collections, filling included"
	gcPause = "longest pause of the garbage collector"

	givenBack = "until the memory is given back after a drain"
)

// backlog looks at clients in an empty queue, and in a long one, and at how soon the
// memory is given back when that is drained.
func backlog(o *Options) Experiment {
	twice := Target{Of: value, Limit: 2}
	return Experiment{
		Name:  "backlog",
		Title: fmt.Sprintf("%d connections that put, reserve and delete, %s jobs in the queue", interactiveClients, load.Count(o.jobs(backlogJobs))),
		goals: []goal{
			{p50 + slowdown, twice}, {p99 + slowdown, twice}, {p999 + slowdown, twice},
			{gcPause, Target{Of: value, Limit: 1e6}},    // ns
			{givenBack, Target{Of: value, Limit: 10e9}}, // ns
		},
		trial: func(ctx context.Context, t *trial) error {
			t.server.Env = append(slices.Clip(t.server.Env), "GODEBUG=gctrace=1")
			return t.start(ctx, t.backlog)
		},
	}
}

func (t *trial) backlog(ctx context.Context) error {
	o := t.clients()
	before := known(load.UsageOf(t.PID).RSS)
	empty, err := load.Run(ctx, o)
	if err != nil {
		return err
	}
	if err := t.fill(ctx, o.Tube, t.jobs(backlogJobs)); err != nil {
		return err
	}
	long, err := load.Run(ctx, o)
	if err != nil {
		return err
	}
	for _, q := range []struct {
		name          string
		before, after time.Duration
	}{
		{p50, empty.Latency.P50, long.Latency.P50},
		{p99, empty.Latency.P99, long.Latency.P99},
		{p999, empty.Latency.P999, long.Latency.P999},
	} {
		t.setTime(q.name+emptyQueue, q.before)
		t.setTime(q.name+withBacklog, q.after)
		t.set(q.name+slowdown, load.Times, float64(q.after)/float64(q.before))
	}
	full := known(load.UsageOf(t.PID).RSS)
	if err := t.drain(ctx, o.Tube, t.jobs(backlogJobs)); err != nil {
		return err
	}
	back, err := t.untilGivenBack(ctx, before, full)
	if err != nil {
		return err
	}
	t.setTime(givenBack, back)
	collections, pause := gcPauses(t.output())
	if collections == 0 { // it is no Go program
		collections, pause = math.NaN(), math.NaN()
	}
	t.set(gcCount, load.Number, collections)
	t.set(gcPause, load.Nanoseconds, pause)
	return nil
}

// gcTrace matches a line that the Go runtime writes for each collection. The phases of
// "ms clock" are sweep termination, during which the world is stopped, concurrent mark,
// and mark termination, during which it is stopped again (package runtime, "Environment
// Variables"):
//
//	gc 7 @0.131s 2%: 0.019+1.6+0.004 ms clock, 0.038+0.25/0.9/0+0.009 ms cpu, 4->5->2 MB, ...
var gcTrace = regexp.MustCompile(`(?m)^gc \d+ @.*: ([\d.]+)\+[\d.]+\+([\d.]+) ms clock`)

// gcPauses returns how many collections a server's output tells of, and the longest pause
// in ns.
func gcPauses(output []byte) (collections, longest float64) {
	for _, m := range gcTrace.FindAllSubmatch(output, -1) {
		collections++
		for _, ms := range m[1:] {
			pause, _ := strconv.ParseFloat(string(ms), 64)
			longest = max(longest, pause*1e6)
		}
	}
	return collections, longest
}
