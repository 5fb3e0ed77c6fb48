// Package bench implements "beanpole bench", which measures a server under the load of
// clients that put, reserve and delete jobs as fast as it answers. The separate module
// bench compares servers. Its load generator uses less CPU time.
package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/flags"
)

const long = `Benchmark a server. Each connection repeatedly puts jobs, reserves the same number and deletes
them, as a program with the Go client does. The result is the number of these commands per
second, and the latency of their replies. If the server has reserve-batch, one such command
reserves all jobs in flight; it counts once for each job.

The jobs are put into the tube bench, which must not contain other jobs. They are deleted at
the end, even if the benchmark is interrupted. The clients run on this machine. If the server
also runs on it, both share its processors, and the result is lower.`

const example = `  beanpole bench --connections 50
  beanpole bench --connections 8 --in-flight 64 --body 1000 --duration 10s
  beanpole bench --addr queue.example.com:11300 --json`

// tube is the tube of the jobs.
const tube = "bench"

// A load contains the options of bench.
type load struct {
	connections, inFlight int
	body                  []byte
	duration              time.Duration
	jobs                  int64 // number of jobs to put; 0 means no limit until the duration ends
}

// New returns the command bench.
func New() *cobra.Command {
	var s cliutil.Session
	l := load{connections: 1, inFlight: 1, body: make([]byte, 64)}
	cmd := s.Command("bench", "", "benchmark a server", func(ctx context.Context, _ []string) error {
		for i := range l.body {
			l.body[i] = 'a' + byte(i%26)
		}
		r, err := l.run(ctx, &s.Server)
		switch {
		case err != nil:
			return err
		case s.JSON:
			return s.PrintJSON(r)
		}
		return r.print(s.Out, &l)
	})
	cmd.Long, cmd.Example = long, example
	flags.AddGroup(cmd.Flags(), "Load", func(fs *pflag.FlagSet) {
		fs.Func("connections", "use `N` connections (default 1)", flags.IntoCount(&l.connections, "connections"))
		fs.Func("in-flight", "keep up to `N` commands unanswered on each connection (default 1)", flags.IntoCount(&l.inFlight, "commands"))
		fs.Func("body", "size of a body in `BYTES` (default 64)", func(s string) error {
			n, err := flags.Size(s, 1<<30)
			l.body = make([]byte, n)
			return err
		})
		cliutil.DurationVar(fs, &l.duration, "duration", "", time.Millisecond, 5*time.Second, "measure for this `TIME`")
		fs.Int64Var(&l.jobs, "ops", 0, "stop after `N` jobs (default unlimited)")
	})
	s.DefineJSON(cmd)
	return cmd
}

// A result contains the measurements.
type result struct {
	Jobs       int64   `json:"jobs"`
	Seconds    float64 `json:"seconds"`
	Throughput float64 `json:"commands_per_second"`
	Latency    latency `json:"latency_ms"`
}

// A latency is the distribution of the times between a command and its reply, in
// milliseconds. For commands that are sent together, it is the time between the first
// command and the last reply.
type latency struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

func (r *result) print(w io.Writer, l *load) error {
	_, err := fmt.Fprintf(w, "connections %d, in flight %d, bodies of %d bytes\n  throughput  %.0f commands/s (%d jobs in %.3fs)\n  latency     p50 %.3fms  p99 %.3fms  p99.9 %.3fms  max %.3fms\n",
		l.connections, l.inFlight, len(l.body), r.Throughput, r.Jobs, r.Seconds, r.Latency.P50, r.Latency.P99, r.Latency.P999, r.Latency.Max)
	return err
}

// run puts the load on the server.
func (l *load) run(ctx context.Context, server *cliutil.Connection) (*result, error) {
	server.Reconnect = client.Never // a lost connection would change the results
	clients := make([]*looper, l.connections)
	for i := range clients {
		c, err := server.Dial(ctx)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		if err := c.WatchOnly(ctx, tube); err != nil {
			return nil, err
		}
		clients[i] = &looper{load: l, conn: c, took: newHistogram()}
	}
	if st, err := clients[0].conn.StatsTube(ctx, tube); err == nil && st.JobsReady > 0 {
		return nil, fmt.Errorf("tube %s contains other jobs, %d of them ready; if they are not needed, delete them: beanpole clear %[1]s --state ready", tube, st.JobsReady)
	}
	if l.jobs <= 0 {
		l.jobs = math.MaxInt64
	}
	var begun atomic.Int64
	start := time.Now()
	limited, cancel := context.WithTimeout(ctx, l.duration)
	defer cancel()
	g, limited := errgroup.WithContext(limited)
	for _, c := range clients {
		g.Go(func() error { return c.loop(limited, &begun) })
	}
	if err := errors.Join(g.Wait(), ctx.Err()); err != nil {
		return nil, err
	}
	r, all := &result{Seconds: time.Since(start).Seconds()}, newHistogram()
	for _, c := range clients {
		r.Jobs += c.done
		all.Merge(c.took)
	}
	r.Throughput = float64(3*r.Jobs) / r.Seconds
	ms := func(ns int64) float64 { return float64(ns) / 1e6 }
	r.Latency = latency{ms(all.ValueAtQuantile(50)), ms(all.ValueAtQuantile(99)), ms(all.ValueAtQuantile(99.9)), ms(all.Max())}
	return r, nil
}

// newHistogram returns a histogram of times up to a minute, in nanoseconds.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(100, int64(time.Minute), 3)
}

// A looper is one of the clients.
type looper struct {
	*load
	conn *client.Conn
	done int64 // jobs
	took *hdrhistogram.Histogram
}

// loop puts, reserves and deletes jobs until the time has passed or the requested number
// of jobs has been started. It deletes all jobs that it has put.
func (c *looper) loop(ctx context.Context, begun *atomic.Int64) error {
	jobs := make([]client.NewJob, c.inFlight)
	for i := range jobs {
		jobs[i] = client.NewJob{Tube: tube, Body: bytes.Clone(c.body)}
	}
	for ctx.Err() == nil {
		n := int64(len(jobs))
		last := begun.Add(n)
		for i := range jobs {
			number(jobs[i].Body, last-int64(i))
		}
		if late := last - c.load.jobs; late > 0 {
			if n -= late; n <= 0 {
				return nil
			}
		}
		if err := c.round(context.WithoutCancel(ctx), jobs[:n]); err != nil {
			return err
		}
		c.done += n
	}
	return nil
}

// digits is the size of the job's number at the beginning of a body, in bytes.
const digits = 12

// number writes a number into a body, the lowest digit first. So all jobs differ, and the
// load also works with the policy unique.
func number(body []byte, n int64) {
	for i := range min(digits, len(body)) {
		body[i] = '0' + byte(n%10)
		n /= 10
	}
}

// round puts some jobs, and reserves and deletes the same number of jobs.
func (c *looper) round(ctx context.Context, jobs []client.NewJob) error {
	last := time.Now()
	answered := func() {
		now := time.Now()
		c.took.RecordValue(min(int64(now.Sub(last)), int64(time.Minute)))
		last = now
	}
	if _, err := c.conn.PutMany(ctx, jobs); err != nil {
		return firstOf(err)
	}
	answered()
	ids := make([]uint64, 0, len(jobs))
	for len(ids) < len(jobs) {
		reserved, err := c.conn.ReserveMany(ctx, len(jobs)-len(ids), 0)
		if err != nil {
			return err
		}
		for _, j := range reserved {
			if from := min(digits, len(c.body)); len(j.Body) != len(c.body) || !bytes.Equal(j.Body[from:], c.body[from:]) {
				return fmt.Errorf("job %d in tube %s does not belong to this benchmark", j.ID, tube)
			}
			ids = append(ids, j.ID)
		}
	}
	answered()
	if err := c.conn.DeleteMany(ctx, ids); err != nil {
		return firstOf(err)
	}
	answered()
	return nil
}

// firstOf returns the first error of a batch.
func firstOf(err error) error {
	if batch, ok := errors.AsType[*client.BatchError](err); ok {
		return batch.Unwrap()[0]
	}
	return err
}
