package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// A trial is one run of an experiment on a server. It must not be used concurrently.
type trial struct {
	*Options
	*Process // the server, while it is running
	server   Server
	measured []Measurement
}

// A Measurement is a value of a trial, with the unit of a Go benchmark result.
type Measurement struct {
	Value float64
	Unit  string
}

// start runs f with a server in a new directory.
func (t *trial) start(ctx context.Context, f func(context.Context) error) error {
	dir, err := os.MkdirTemp("", "beanpole-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return t.startIn(ctx, dir, f)
}

// startIn runs f with a server in dir. After f has returned, its context is canceled,
// which closes its connections.
func (t *trial) startIn(ctx context.Context, dir string, f func(context.Context) error) (err error) {
	if t.Process, err = t.server.Start(ctx, dir); err != nil {
		return err
	}
	defer t.Kill()
	ctx, end := context.WithCancel(ctx)
	defer end()
	if err := f(ctx); err != nil {
		return t.explain(err)
	}
	return nil
}

// set adds a Measurement, unless the value is 0, which means that it is unknown.
func (t *trial) set(value float64, unit string) {
	if value != 0 {
		t.measured = append(t.measured, Measurement{value, unit})
	}
}

// setRSS adds the current resident memory of the server, and returns it.
func (t *trial) setRSS(unit string) (rss float64) {
	rss = float64(load.UsageOf(t.PID).RSS)
	t.set(rss, unit)
	return rss
}

// fill puts n ready jobs into a tube.
func (t *trial) fill(ctx context.Context, tube string, n int64) error {
	return t.bulk(ctx, load.Options{Mix: load.Put, Tube: tube, Ops: n}, n)
}

// drain deletes all jobs of a tube, and checks that their number is n.
func (t *trial) drain(ctx context.Context, tube string, n int64) error {
	return t.bulk(ctx, load.Options{Mix: load.Drain, Tube: tube}, 2*n)
}

// bulk runs a load of many jobs at full speed, and checks the number of commands.
func (t *trial) bulk(ctx context.Context, o load.Options, commands int64) error {
	o.Addr, o.Connections, o.InFlight = t.Addr, 8, 64
	r, err := load.Run(ctx, o)
	if err == nil && r.Commands != commands {
		err = fmt.Errorf("%s of the jobs took %d commands, not %d", o.Mix, r.Commands, commands)
	}
	return err
}

const jobTTR = time.Hour // long enough that no TTR expires
