package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/internal/load"
)

// A trial is one run of an experiment on a server. Owned by its goroutine.
type trial struct {
	*Options
	*Process // the server, unless the experiment is cold
	server   Server
	isA      bool
	gc       *gcTrace           // nil unless asked for
	values   map[string]float64 // by the name of the figure, in its unit
}

func (t *trial) run(ctx context.Context, e *Experiment) error {
	if e.gctrace {
		t.gc = new(gcTrace)
		t.server.Env = append(slices.Clip(t.server.Env), gcTraceEnv)
		t.server.Output = t.gc
	}
	if e.cold {
		return e.trial(ctx, t)
	}
	return t.start(ctx, func() error { return e.trial(ctx, t) })
}

// start starts the server for the time of f.
func (t *trial) start(ctx context.Context, f func() error) (err error) {
	if t.Process, err = t.server.Start(ctx); err != nil {
		return err
	}
	defer t.Stop()
	if err := f(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return t.why(err)
	}
	return nil
}

// set gives a figure its value in this trial. A figure that a trial does not set
// is unknown in it.
func (t *trial) set(name string, value float64) { t.values[name] = value }

// setTime is set for a time.
func (t *trial) setTime(name string, d time.Duration) { t.set(name, float64(d)) }

// setRSS is set for the resident memory of the server now, if that is known.
func (t *trial) setRSS(name string) (rss float64) {
	if u, ok := load.UsageOf(t.PID); ok {
		rss = float64(u.RSS)
		t.set(name, rss)
	}
	return rss
}

// The names of the figures of clients.
const (
	throughput    = "throughput"
	p50           = "p50"
	p99           = "p99"
	p999          = "p99.9"
	longest       = "longest"
	cpuPerCommand = "CPU per command"
	peakRSS       = "peak RSS"
)

// clientFigures are the figures of setClients. Their names end with a description of
// the clients.
func clientFigures(who string) []Figure {
	return append(latencyFigures(who), Figure{Name: throughput + who, Unit: PerSecond})
}

func (t *trial) setClients(who string, r load.Result) {
	t.setLatency(who, r.Latency)
	t.set(throughput+who, r.Throughput)
}

// latencyFigures are what setLatency sets.
func latencyFigures(of string) (all []Figure) {
	for _, name := range []string{p50, p99, longest} {
		all = append(all, Figure{Name: name + of, Unit: Nanoseconds})
	}
	return all
}

func (t *trial) setLatency(of string, l load.Latency) {
	t.setTime(p50+of, l.P50)
	t.setTime(p99+of, l.P99)
	t.setTime(longest+of, l.Max)
}

// interactiveClients is how many clients there are whose latency counts.
const interactiveClients = 8

func (t *trial) clients() load.Options {
	return load.Options{Addr: t.Addr, PID: t.PID, Prefix: "interactive", Connections: interactiveClients, Duration: t.Duration}
}

// interactive are these clients, for a while.
func (t *trial) interactive(ctx context.Context) (load.Result, error) {
	return load.Run(ctx, t.clients())
}

// fill puts n ready jobs into the tube of that name.
func (t *trial) fill(ctx context.Context, tube string, n int64) error {
	return t.bulk(ctx, load.Options{Mix: load.Put, Prefix: tube, Ops: n}, n)
}

// drain takes all jobs out of the tube; they must be n.
func (t *trial) drain(ctx context.Context, tube string, n int64) error {
	return t.bulk(ctx, load.Options{Mix: load.Drain, Prefix: tube}, 2*n)
}

// bulk does something to many jobs as fast as it goes, which must be so many commands.
func (t *trial) bulk(ctx context.Context, o load.Options, commands int64) error {
	o.Addr, o.Connections, o.InFlight = t.Addr, 8, 64
	r, err := load.Run(ctx, o)
	if err == nil && r.Commands != commands {
		err = fmt.Errorf("%s of the jobs took %d commands, not %d", o.Mix, r.Commands, commands)
	}
	return err
}

// sleep waits, unless ctx is done before.
func sleep(ctx context.Context, d time.Duration) error {
	alarm := time.NewTimer(d)
	defer alarm.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-alarm.C:
		return nil
	}
}

const jobTTR = 3600 // s; no job comes back by itself

// batches calls f for n things, 100 at a time: with the number of the first, and
// how many they are.
func batches(n int, f func(first, size int) error) error {
	const size = 100
	for i := 0; i < n; i += size {
		if err := f(i, min(size, n-i)); err != nil {
			return err
		}
	}
	return nil
}
