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

// options are what the command line says.
type options struct {
	program     string
	rounds      int
	duration    time.Duration
	connections []int
	body        int
	gaps        int
	memory      int
	jobs        int
	save        string // file
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
	flag.StringVar(&opt.save, "save", "", "write the figures to this `FILE` besides, as JSON: charts are drawn from that")
	flag.IntVar(&opt.gaps, "gaps", 0, "take the leader away `N` times in each of some ways instead, and measure for how long a client has no answer")
	flag.IntVar(&opt.memory, "memory", 0, "measure `N` times instead what memory the jobs take")
	flag.IntVar(&opt.jobs, "jobs", 500_000, "how many `JOBS` take memory")
	flag.Parse()
	if flag.NArg() > 0 || opt.rounds < 1 || opt.duration <= 0 || opt.gaps < 0 || opt.memory < 0 || opt.jobs < 0 {
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
	switch {
	case opt.gaps > 0:
		return opt.measureGaps(ctx, w, dir)
	case opt.memory > 0:
		return opt.measureMemory(ctx, w, dir)
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

// A contender takes puts.
type contender struct {
	name string
	pids []int // of all its servers
	put  puts
}

// puts has connections put jobs, one after the other, each when the last one is acknowledged.
type puts func(ctx context.Context, connections, body int, duration time.Duration) (load.Result, error)

func pids(of ...*bench.Process) (all []int) {
	for _, p := range of {
		all = append(all, p.PID)
	}
	return all
}

// A cell is what was measured of a contender with a number of connections in a round.
type cell struct {
	rate, p50, p99 float64 // 1/s, ns, ns
	cpu            float64 // of all servers, ns a put
}

// compare measures all contenders, and prints the table.
func (opt *options) compare(ctx context.Context, w io.Writer, contenders []contender) error {
	fmt.Fprintf(w, "Puts of %d bytes, medians of %d rounds of %v. The ratio is that of the rates of the same round, to the single server: its median, smallest and largest.\n\n", opt.body, opt.rounds, opt.duration)
	fmt.Fprint(w, "| clients | | puts/s | ratio | p50 | p99 | CPU a put, all servers |\n|--:|---|--:|--:|--:|--:|--:|\n")
	var all []bench.Puts
	for _, connections := range opt.connections {
		cells := make([][]cell, len(contenders))
		for range opt.rounds {
			for i, c := range contenders {
				measured, err := opt.measure(ctx, c, connections)
				if err != nil {
					return fmt.Errorf("%s, %d connections: %w", c.name, connections, err)
				}
				cells[i] = append(cells[i], measured)
			}
		}
		for i, c := range contenders {
			p := sum(cells[i], cells[0])
			p.Contender, p.Clients = c.name, connections
			fmt.Fprintf(w, "| %d | %s | %.0f | %s | %s | %s | %s |\n", p.Clients, p.Contender, p.Rate.Median, p.Ratio.Ratio(),
				load.Nanoseconds.Format(p.P50), load.Nanoseconds.Format(p.P99), load.Nanoseconds.Format(p.CPU))
			all = append(all, p)
		}
	}
	fmt.Fprintln(w)
	if opt.save != "" {
		return bench.Save(opt.save, all)
	}
	return nil
}

func (opt *options) measure(ctx context.Context, c contender, connections int) (cell, error) {
	before := usage(c.pids)
	r, err := c.put(ctx, connections, opt.body, opt.duration)
	if err == nil && r.Commands == 0 {
		err = fmt.Errorf("no put was answered in %v", r.Elapsed)
	}
	if err != nil {
		return cell{}, err
	}
	spent := usage(c.pids) - before
	return cell{r.Throughput, float64(r.Latency.P50), float64(r.Latency.P99), float64(spent) / float64(r.Commands)}, nil
}

// usage is the processor time that processes have taken.
func usage(pids []int) (sum time.Duration) {
	for _, pid := range pids {
		sum += load.UsageOf(pid).CPU
	}
	return sum
}

// sum sums up the rounds of a contender, beside those of the one that it is compared with.
func sum(cells, first []cell) bench.Puts {
	return bench.Puts{
		Rate:  *spread(cells, func(_ int, c cell) float64 { return c.rate }),
		Ratio: *spread(cells, func(i int, c cell) float64 { return c.rate / first[i].rate }),
		P50:   spread(cells, func(_ int, c cell) float64 { return c.p50 }).Median,
		P99:   spread(cells, func(_ int, c cell) float64 { return c.p99 }).Median,
		CPU:   spread(cells, func(_ int, c cell) float64 { return c.cpu }).Median,
	}
}

// spread sums up a figure of the rounds.
func spread[T any](rounds []T, of func(round int, r T) float64) *bench.Spread {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = of(i, r)
	}
	return bench.NewSpread(values)
}
