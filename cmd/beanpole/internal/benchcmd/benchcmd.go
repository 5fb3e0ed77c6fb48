// Package benchcmd is "beanpole bench": its options, the servers that it starts, and what
// it prints. Package load makes the load, package bench compares.
package benchcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/cmd/beanpole/internal/command"
	"github.com/beanpole-mq/beanpole/internal/bench"
	"github.com/beanpole-mq/beanpole/internal/cli"
	"github.com/beanpole-mq/beanpole/internal/load"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// options are what the command line of bench says.
type options struct {
	load   load.Options
	target cli.Target

	servers servers
	rounds  int
	suite   string // one of bench.Suites
	restart int64  // jobs

	markdown, json bool
	history        string // file

	version string // of this binary, for the history
}

const long = `Put load on a server and measure it: throughput, latency and, if it runs on this
machine, processor time. Each connection sends its next command only when a
reply has come. The jobs are removed again; give it a server without other
clients on its tubes.

With --against, start two servers, run the same load on each of them in turn,
and print the medians and their ratios. The other server is this binary. Each
round also runs a process that does nothing but answer: no server can make the
generator measure more than that. It runs on Linux only.

With TLS the generator encrypts too, which takes it longer than the load itself.`

const example = `  beanpole bench --connections 50
  beanpole bench --connections 8 --in-flight 64 --body 1000 --duration 10s
  beanpole bench --mix wake --addr unix:/run/bean.sock
  beanpole bench --connections 50 --idle 10000
  beanpole bench --connections 50 --against beanstalkd
  beanpole bench --suite memory --markdown --against beanstalkd
  beanpole bench --suite journal --against 'beanstalkd -b {dir} -f 0' \
      --server 'beanpole -b {dir}'`

// New returns the command bench of a program of this version.
func New(version string) *cobra.Command {
	opt := options{version: version}
	cmd := &cobra.Command{
		Use:                   "bench [options]",
		Short:                 "measure a server, or compare two",
		Long:                  long,
		Example:               example,
		DisableFlagsInUseLine: true,
		Args:                  command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opt.check(cmd.Flags()); err != nil {
				return err
			}
			return interruptible(cmd, opt.run)
		},
	}
	opt.define(cmd)
	cmd.AddCommand(newResponder(), newScale())
	return cmd
}

// interruptible runs what takes long until a signal asks it to end.
func interruptible(cmd *cobra.Command, run func(ctx context.Context, stdout, stderr io.Writer) error) error {
	ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	err := run(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr())
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

func (opt *options) define(cmd *cobra.Command) {
	command.AddFlags(cmd.Flags(), "Load", func(fs *pflag.FlagSet) {
		fs.Func("mix", "`MIX` of commands: put-reserve-delete, put, drain,\nput-delete, or wake: workers that wait for each job\n(put-reserve-delete)",
			command.Into(&opt.load.Mix, parseMix))
		fs.Func("connections", "`N` connections (1)", command.IntoCount(&opt.load.Connections, "connections"))
		fs.Func("in-flight", "`N` unanswered commands on each connection (1)", command.IntoCount(&opt.load.InFlight, "commands"))
		fs.Func("body", "`BYTES` in the body of a job (64)", command.Into(&opt.load.BodySize, parseBody))
		fs.Func("backlog", "`N` more jobs lie in the queue meanwhile (0)", command.Into(&opt.load.Backlog, parseJobs))
		fs.Func("occupied", "`N` tubes besides have one job each (0)", command.IntoCount(&opt.load.Occupied, "tubes"))
		fs.Func("idle", "`N` connections besides are open and silent (0)", command.IntoCount(&opt.load.Idle, "connections"))
		fs.Func("workers", "mix wake: `N` workers wait for the jobs of all connections\n(as many)", command.IntoCount(&opt.load.Workers, "workers"))
		fs.Func("duration", "measure for a `TIME`, such as 10s (5s)", command.Into(&opt.load.Duration, command.ParseDuration))
		fs.Func("ops", "end after `N` jobs; 0: when the time is over (0)", command.Into(&opt.load.Ops, parseJobs))
		fs.Func("pid", "process `ID` of the server, to measure its processor\ntime and memory", command.IntoCount(&opt.load.PID, "a process"))
	})
	command.AddFlags(cmd.Flags(), "Comparison", func(fs *pflag.FlagSet) {
		fs.StringVar(&opt.servers.against, "against", "", "`COMMAND` that starts the server to compare with;\n"+
			"{port} is a free port, {dir} a new directory; without\n{port} it gets -l 127.0.0.1 -p {port} besides")
		fs.StringVar(&opt.servers.ours, "server", "", "`COMMAND` that starts the other one (this binary)")
		fs.Func("rounds", "run each server `N` times (5)", command.IntoCount(&opt.rounds, "rounds"))
		fs.Func("suite", "run all loads of doc/benchmarks.md, not one: `NAME` is\nmemory, journal or crowd", command.Into(&opt.suite, parseSuite))
		fs.Func("restart", "put `N` jobs, kill the servers and measure how soon\nthey serve again; the commands need {dir}", command.Into(&opt.restart, parseJobs))
	})
	command.AddFlags(cmd.Flags(), "Output", func(fs *pflag.FlagSet) {
		fs.BoolVar(&opt.markdown, "markdown", false, "print a table in Markdown")
		fs.BoolVar(&opt.json, "json", false, "print JSON, an object a line")
		fs.StringVar(&opt.history, "history", "", "add a line for each comparison to this CSV `FILE`")
		fs.BoolP("help", "h", false, "print this help")
	})
	opt.target.Define(cmd.Flags())
}

// check refuses options that do not go together.
func (opt *options) check(flags *pflag.FlagSet) error {
	compares := opt.servers.against != ""
	for _, name := range []string{"server", "rounds", "suite", "restart", "markdown", "history"} {
		if flags.Changed(name) && !compares {
			return command.UsageError("option --%s needs --against COMMAND", name)
		}
	}
	for _, name := range ofTheServer {
		if flags.Changed(name) && compares {
			return command.UsageError("option --%s does not go with --against, which starts the servers", name)
		}
	}
	if opt.markdown && opt.json {
		return command.UsageError("options --markdown and --json exclude each other")
	}
	if flags.Changed("workers") && opt.load.Mix != load.Wake {
		return command.UsageError("option --workers needs --mix wake")
	}
	if i := slices.IndexFunc(noRestart, flags.Changed); opt.restart > 0 && i >= 0 {
		return command.UsageError("option --%s does not go with --restart", noRestart[i])
	}
	if i := slices.IndexFunc(noSuite, flags.Changed); opt.suite != "" && i >= 0 {
		return command.UsageError("option --%s does not go with --suite, which has its own loads", noSuite[i])
	}
	return nil
}

// ofTheServer are options of a server that runs already.
var ofTheServer = []string{
	"addr", "pid", "token", "token-file", "token-in-put", "tls", "tls-ca", "tls-cert", "tls-key", "tls-server-name", "server-timeout",
}

// Options that do not go with --suite, which has its own values for them, and those
// that do not go with --restart, which does not use them.
var (
	ofOneLoad = []string{
		"mix", "connections", "in-flight", "backlog", "occupied", "idle", "workers", "ops",
	}
	noSuite   = slices.Concat(ofOneLoad, []string{"body"})
	noRestart = slices.Concat(ofOneLoad, []string{"duration", "suite", "history"})
)

func (opt *options) run(ctx context.Context, stdout, stderr io.Writer) error {
	if opt.servers.against == "" {
		return opt.measure(ctx, stdout)
	}
	var history *os.File // opened before hours are spent on what it is to be told
	if opt.history != "" {
		var err error
		if history, err = openHistory(opt.history); err != nil {
			return err
		}
		defer history.Close()
	}
	o := bench.Options{Rounds: opt.rounds, Duration: opt.load.Duration, Jobs: opt.restart, Progress: progress(stderr)}
	var err error
	if o.A, o.B, o.Responder, err = opt.servers.commands(); err != nil {
		return err
	}
	reports, err := bench.Run(ctx, o, opt.experiments(&o)) // what succeeded is worth printing
	if history != nil {
		err = errors.Join(err, bench.WriteHistory(history, reports, bench.ThisMachine(), opt.version, time.Now()))
	}
	return errors.Join(err, printReports(stdout, reports, opt.markdown, opt.json))
}

// measure runs one load on a running server.
func (opt *options) measure(ctx context.Context, stdout io.Writer) error {
	if err := opt.aim(); err != nil {
		return err
	}
	r, err := load.Run(ctx, opt.load)
	if err != nil {
		return err
	}
	if opt.json {
		return bench.WriteJSONLines(stdout, r)
	}
	return bench.WriteResult(stdout, r)
}

// aim tells the load where the server is, and how to speak to it.
func (opt *options) aim() error {
	addr, o, err := opt.target.Options()
	if err != nil {
		return err
	}
	if opt.load.Addr, err = parseServerAddr(addr); err != nil {
		return command.UsageError("--addr: %w", err)
	}
	opt.load.SetupLimit = o.Timeout
	switch {
	case o.Token != "" && o.TokenAsPut:
		opt.load.Hello = wire.AppendPut(nil, 0, 0, 1, []byte(o.Token))
	case o.Token != "":
		opt.load.Hello = wire.AppendAuth(nil, o.Token)
	}
	if opt.load.TLS = o.TLS; o.TLS != nil && o.TLS.ServerName == "" {
		opt.load.TLS.ServerName, _, err = net.SplitHostPort(opt.load.Addr)
	}
	return err
}

// experiments are what two servers are compared in.
func (opt *options) experiments(o *bench.Options) []bench.Experiment {
	switch {
	case opt.restart > 0:
		return []bench.Experiment{bench.Restart(o, opt.load.BodySize)}
	case opt.suite != "":
		return bench.Suites[opt.suite](o)
	}
	return []bench.Experiment{bench.Load(opt.load)}
}

// progress shows people that something goes on.
func progress(w io.Writer) func(experiment, server string, round int) {
	return func(experiment, server string, round int) {
		fmt.Fprintf(w, "%s, round %d: %s\n", experiment, round, server)
	}
}

func printReports(w io.Writer, reports []bench.Report, markdown, json bool) error {
	m := bench.ThisMachine()
	switch {
	case len(reports) == 0:
		return nil
	case json:
		return errors.Join(bench.WriteJSONLines(w, m), bench.WriteJSONLines(w, reports...))
	case markdown:
		fmt.Fprintf(w, "%s\n\n", m)
		return bench.WriteMarkdown(w, reports)
	}
	return bench.WriteTable(w, reports)
}

func parseMix(s string) (load.Mix, error) {
	if !slices.Contains(load.Mixes, load.Mix(s)) {
		return "", fmt.Errorf("there are: %s", load.Mixes)
	}
	return load.Mix(s), nil
}

func parseSuite(s string) (string, error) {
	if bench.Suites[s] == nil {
		return "", errors.New("want memory, journal or crowd")
	}
	return s, nil
}

// parseServerAddr takes what -l takes and completes it.
func parseServerAddr(s string) (string, error) {
	a, err := server.ParseAddress(s, server.DefaultPort)
	return a.String(), err
}

// parseBody reads the size of a body; load takes a negative one for none.
func parseBody(s string) (int, error) {
	n, err := command.ParseSize(s, server.MaxJobSizeLimit)
	if n == 0 {
		return -1, err
	}
	return int(n), err
}

func parseJobs(s string) (int64, error) {
	n, err := command.ParseNumber(s, "jobs", math.MaxInt64)
	return int64(n), err
}
