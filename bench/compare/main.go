// Command compare starts two servers in turn, runs the same experiments on both, and
// prints Go benchmark results for benchstat. It runs on Linux only.
//
//	go run ./compare [flags] A B
//
// A and B are the commands that start the servers. In them, {port} is a free port, and
// {dir} is a new directory. A command without {port} gets the additional arguments -l
// 127.0.0.1 -p {port}:
//
//	compare -connections 50 beanstalkd bin/beanpole | tee new.txt
//	go tool benchstat -col /server new.txt
//	compare -suite journal 'beanstalkd -b {dir} -f 0' 'bin/beanpole -b {dir}'
//	compare -suite memory -only '^8 conn|^500' old/beanpole bin/beanpole
//	compare -connections 50 -backlog 10000000 beanstalkd bin/beanpole
//
// Without -suite, the command runs the load that the flags describe. With -at, it runs
// that load once on a running server:
//
//	compare -at 127.0.0.1:11300 -mix put-delete -connections 8 -backlog 200000
//
// Package bench describes the suites and the method.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/bench"
	"github.com/beanpole-mq/beanpole/bench/load"
)

// options contains the command line's options.
type options struct {
	bench bench.Options
	load  load.Options
	suite string
	only  *regexp.Regexp // nil selects all

	at        string // address of a running server
	responder string // address of the responder
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	var opt options
	opt.define()
	flag.Parse() // exits the process on failure
	err, code := opt.check(flag.Args()), 2
	if err == nil {
		err, code = opt.run(ctx, os.Stdout, os.Stderr), 1
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(code)
	}
}

func (opt *options) define() {
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "usage: compare [flags] A B\n\nA and B are the commands that start two servers.\n\n")
		flag.PrintDefaults()
	}
	flag.StringVar(&opt.suite, "suite", "", "run the experiments of `NAME`: "+strings.Join(suites(), ", "))
	flag.Func("only", "run only experiments whose names match `REGEXP`", func(s string) (err error) {
		opt.only, err = regexp.Compile(s)
		return err
	})
	flag.IntVar(&opt.bench.Rounds, "rounds", 5, "run each experiment on each server `N` times")
	flag.DurationVar(&opt.bench.Duration, "duration", 5*time.Second, "measure each load for this `TIME`")
	flag.Int64Var(&opt.bench.Jobs, "jobs", 0, "number `N` of jobs in footprint and restart (default: the one in bench.Options)")
	flag.DurationVar(&opt.bench.Settle, "settle", 15*time.Second, "wait this `TIME` for a server to release memory, in footprint")

	flag.StringVar((*string)(&opt.load.Mix), "mix", string(load.PutReserveDelete), fmt.Sprintf("the `MIX` of commands: %s", load.Mixes))
	flag.IntVar(&opt.load.Connections, "connections", 1, "number `N` of connections")
	flag.IntVar(&opt.load.InFlight, "in-flight", 1, "maximum number `N` of unanswered commands per connection")
	flag.IntVar(&opt.load.BodySize, "body", 64, "size of a body in `BYTES`; a negative value means no body")
	flag.StringVar(&opt.load.Body, "template", "", "use `TEXT` as the body, with % replaced by a number that is unique per job")
	flag.Int64Var(&opt.load.Backlog, "backlog", 0, "number `N` of additional jobs in the queue during the run")
	flag.IntVar(&opt.load.Occupied, "occupied", 0, "number `N` of additional tubes with one job each")
	flag.IntVar(&opt.load.Idle, "idle", 0, "number `N` of additional idle connections")
	flag.Int64Var(&opt.load.Ops, "ops", 0, "stop after `N` jobs (default unlimited)")

	flag.StringVar(&opt.at, "at", "", "run the load on the server at this `ADDRESS` instead of starting servers")
	flag.StringVar(&opt.responder, "responder", "", "run only the responder, which shows the limit of the load generator, at this `ADDRESS`")
}

func suites() []string { return slices.Sorted(maps.Keys(bench.Suites)) }

// check sets the commands of the servers.
func (opt *options) check(commands []string) error {
	switch {
	case opt.responder != "" || opt.at != "" && len(commands) == 0 && opt.suite == "":
		return nil
	case len(commands) != 2 || opt.at != "":
		return fmt.Errorf("want the commands of two servers, not %d (see -h)", len(commands))
	case opt.suite != "" && bench.Suites[opt.suite] == nil:
		return fmt.Errorf("unknown suite %q; want one of %s", opt.suite, strings.Join(suites(), ", "))
	case opt.bench.Rounds < 1, opt.bench.Duration <= 0:
		return errors.New("-rounds and -duration must be positive")
	}
	opt.bench.A.Command, opt.bench.B.Command = withPort(strings.Fields(commands[0])), withPort(strings.Fields(commands[1]))
	return nil
}

// withPort adds a free port to a command without {port}.
func withPort(command []string) []string {
	if len(command) == 0 || slices.ContainsFunc(command, func(arg string) bool { return strings.Contains(arg, "{port}") }) {
		return command
	}
	return append(command, "-l", "127.0.0.1", "-p", "{port}")
}

func (opt *options) run(ctx context.Context, stdout, stderr io.Writer) error {
	if opt.responder != "" {
		l, err := net.Listen("tcp", opt.responder)
		if err != nil {
			return err
		}
		return load.Responder(ctx, l)
	}
	if opt.at != "" {
		opt.load.Addr, opt.load.Duration = opt.at, opt.bench.Duration
		r, err := load.Run(ctx, opt.load)
		if err != nil {
			return err
		}
		return printResult(stdout, r)
	}
	o := opt.bench
	o.Progress = func(experiment, server string, round int) { // shows the progress
		fmt.Fprintf(stderr, "%s, round %d: %s\n", experiment, round, server)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o.Responder = bench.Server{Name: "responder", Command: []string{self, "-responder", "127.0.0.1:{port}"}}
	experiments, err := opt.experiments(&o)
	if err != nil {
		return err
	}
	return bench.Run(ctx, o, stdout, experiments)
}

// experiments returns the selected experiments.
func (opt *options) experiments(o *bench.Options) ([]bench.Experiment, error) {
	if opt.suite == "" {
		opt.load.Duration = opt.bench.Duration
		return []bench.Experiment{bench.Load(opt.load)}, nil
	}
	all := bench.Suites[opt.suite](o)
	if opt.only != nil {
		all = slices.DeleteFunc(all, func(e bench.Experiment) bool { return !opt.only.MatchString(e.Name) })
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no experiment of the suite %s matches %q", opt.suite, opt.only)
	}
	return all, nil
}

// printResult prints the measurements of a load on one server.
func printResult(w io.Writer, r load.Result) error {
	ns := func(d time.Duration) string { return load.FormatTime(float64(d)) }
	l := &r.Latency
	_, err := fmt.Fprintf(w, "%s\n  throughput  %s commands/s (%d in %v)\n  latency     p50 %s  p90 %s  p99 %s  p99.9 %s  max %s\n  generator   %.0f%% of a core\n",
		r.Options.Describe(), load.Count(r.Throughput), r.Commands, r.Elapsed.Round(time.Millisecond),
		ns(l.P50), ns(l.P90), ns(l.P99), ns(l.P999), ns(l.Max), 100*r.GeneratorCPU.Seconds()/max(r.Elapsed.Seconds(), 1e-9))
	return err
}
