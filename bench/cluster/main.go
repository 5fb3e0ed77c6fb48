package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/bench"
	"github.com/beanpole-mq/beanpole/bench/load"
)

// options contains the command line's options.
type options struct {
	program     string
	rounds      int
	duration    time.Duration
	connections []int
	body        int
	gaps        int
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == serveJetStream {
		if err := runJetStream(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "clusterbench: jetstream:", err)
			os.Exit(1)
		}
		return
	}
	opt := options{connections: []int{1, 64, 500}}
	flag.StringVar(&opt.program, "beanpole", "beanpole", "the `PROGRAM`")
	flag.IntVar(&opt.rounds, "rounds", 5, "measure `N` times")
	flag.DurationVar(&opt.duration, "duration", 2*time.Second, "measure each load for this `TIME`")
	flag.IntVar(&opt.body, "body", 256, "`BYTES` in the body of a job")
	flag.IntVar(&opt.gaps, "gaps", 0, "take the leader away `N` times in each of some ways instead, and measure for how long a client has no answer")
	flag.Parse()
	if flag.NArg() > 0 || opt.rounds < 1 || opt.duration <= 0 || opt.gaps < 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if err := opt.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "clusterbench:", err)
		os.Exit(1)
	}
}

func (opt *options) run(ctx context.Context, w io.Writer) error {
	dir, err := os.MkdirTemp("", "clusterbench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bench.WriteConfiguration(w)
	if opt.gaps > 0 {
		return opt.measureGaps(ctx, w, dir)
	}
	cluster, err := startCluster(ctx, opt.program, filepath.Join(dir, "cluster"))
	if err != nil {
		return err
	}
	defer cluster.stop()
	single, err := startSingle(ctx, opt.program, filepath.Join(dir, "single"))
	if err != nil {
		return err
	}
	defer single.stop()
	jetstream, err := startJetStream(ctx, filepath.Join(dir, "jetstream"))
	if err != nil {
		return err
	}
	defer jetstream.stop()
	return opt.compare(ctx, w, []contender{
		{"single server, sync before each reply", pids(single.Process), putsAt(func(context.Context) (string, error) { return single.Addr, nil })},
		{"cluster of three, at the leader", cluster.pids(), putsAt(cluster.leader)},
		{"cluster of three, at a follower", cluster.pids(), putsAt(cluster.follower)},
		{"JetStream, 3 replicas, sync always", pids(jetstream.servers...), jetstream.put},
	})
}

// A contender is a server or cluster that accepts puts.
type contender struct {
	name string
	pids []int // process ids of all its servers
	put  puts
}

// A puts measures connections that put jobs, each after the acknowledgment of the
// previous put.
type puts func(ctx context.Context, connections, body int, duration time.Duration) (load.Result, error)

func pids(of ...*bench.Process) (all []int) {
	for _, p := range of {
		all = append(all, p.PID)
	}
	return all
}

// compare measures all contenders in turn.
func (opt *options) compare(ctx context.Context, w io.Writer, contenders []contender) error {
	for _, connections := range opt.connections {
		for range opt.rounds {
			for _, c := range contenders {
				name := fmt.Sprintf("Cluster/%s/server=%s", load.Plural(connections, "client"), c.name)
				measured, err := opt.measure(ctx, c, connections)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				bench.WriteResult(w, name, measured)
			}
		}
	}
	return nil
}

func (opt *options) measure(ctx context.Context, c contender, connections int) ([]bench.Measurement, error) {
	before := usage(c.pids)
	r, err := c.put(ctx, connections, opt.body, opt.duration)
	if err == nil && r.Commands == 0 {
		err = fmt.Errorf("no put was answered in %v", r.Elapsed)
	}
	if err != nil {
		return nil, err
	}
	cpu := float64(usage(c.pids)-before) / float64(r.Commands)
	return []bench.Measurement{{Value: r.Throughput, Unit: "puts/s"}, {Value: float64(r.Latency.P50), Unit: "p50-ns"},
		{Value: float64(r.Latency.P99), Unit: "p99-ns"}, {Value: cpu, Unit: "cpu-ns/put"}}, nil
}

// usage returns the CPU time used by processes.
func usage(pids []int) (sum time.Duration) {
	for _, pid := range pids {
		sum += load.UsageOf(pid).CPU
	}
	return sum
}
