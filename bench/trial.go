package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// A trial is one run of an experiment on a server. Owned by its goroutine.
type trial struct {
	*Options
	*Process // the server, while it runs
	server   Server
	measured []Measurement
}

// A Measurement is a value of a trial. Its unit is that of a Go benchmark result.
type Measurement struct {
	Value float64
	Unit  string
}

// start starts the server for the time of f, with a new directory.
func (t *trial) start(ctx context.Context, f func(context.Context) error) error {
	dir, err := os.MkdirTemp("", "beanpole-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return t.startIn(ctx, dir, f)
}

// startIn is start with a directory for {dir}. When f has returned its context is done,
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

// set adds a Measurement, unless the value is 0, which stands for unknown.
func (t *trial) set(value float64, unit string) {
	if value != 0 {
		t.measured = append(t.measured, Measurement{value, unit})
	}
}

// setRSS adds the resident memory of the server now, and returns it.
func (t *trial) setRSS(unit string) (rss float64) {
	rss = float64(load.UsageOf(t.PID).RSS)
	t.set(rss, unit)
	return rss
}

// fill puts n ready jobs into the tube of that name.
func (t *trial) fill(ctx context.Context, tube string, n int64) error {
	return t.bulk(ctx, load.Options{Mix: load.Put, Tube: tube, Ops: n}, n)
}

// drain takes all jobs out of the tube; they must be n.
func (t *trial) drain(ctx context.Context, tube string, n int64) error {
	return t.bulk(ctx, load.Options{Mix: load.Drain, Tube: tube}, 2*n)
}

// bulk runs a load of many jobs as fast as it goes. It must take so many commands.
func (t *trial) bulk(ctx context.Context, o load.Options, commands int64) error {
	o.Addr, o.Connections, o.InFlight = t.Addr, 8, 64
	r, err := load.Run(ctx, o)
	if err == nil && r.Commands != commands {
		err = fmt.Errorf("%s of the jobs took %d commands, not %d", o.Mix, r.Commands, commands)
	}
	return err
}

const jobTTR = time.Hour // no job comes back by itself
