// Package bench is "beanpole bench": its options and what it prints. Package load makes
// the load.
package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/cli/bench/load"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// options are what the command line of bench says.
type options struct {
	load   load.Options
	target kit.Connection
	json   bool
}

const long = `Put load on a server and measure it: throughput, latency and, if it runs on this
machine, processor time. Each connection sends its next command only when a
reply has come. The jobs are removed again; give it a server without other
clients on its tubes. It runs on Linux only.

With TLS the generator encrypts too, which takes it longer than the load itself.`

const example = `  beanpole bench --connections 50
  beanpole bench --connections 8 --in-flight 64 --body 1000 --duration 10s
  beanpole bench --mix wake --addr unix:/run/bean.sock
  beanpole bench --connections 50 --idle 10000`

// New returns the command bench.
func New() *cobra.Command {
	var opt options
	cmd := &cobra.Command{
		Use:                   "bench [options]",
		Short:                 "benchmark a server",
		Long:                  long,
		Example:               example,
		DisableFlagsInUseLine: true,
		Args:                  kit.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("workers") && opt.load.Mix != load.Wake {
				return kit.UsageError("option --workers needs --mix wake")
			}
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			err := opt.measure(ctx, cmd.OutOrStdout())
			if err != nil && ctx.Err() != nil {
				return errors.New("interrupted")
			}
			return err
		},
	}
	opt.define(cmd)
	return cmd
}

func (opt *options) define(cmd *cobra.Command) {
	kit.AddFlags(cmd.Flags(), "Load", func(fs *pflag.FlagSet) {
		fs.Func("mix", "`MIX` of commands: put-reserve-delete, put, drain,\nput-delete, or wake: workers that wait for each job\n(put-reserve-delete)",
			kit.Into(&opt.load.Mix, parseMix))
		fs.Func("connections", "`N` connections (1)", kit.IntoCount(&opt.load.Connections, "connections"))
		fs.Func("in-flight", "`N` unanswered commands on each connection (1)", kit.IntoCount(&opt.load.InFlight, "commands"))
		fs.Func("body", "`BYTES` in the body of a job (64)", kit.Into(&opt.load.BodySize, parseBody))
		fs.Func("backlog", "`N` more jobs lie in the queue meanwhile (0)", kit.Into(&opt.load.Backlog, parseJobs))
		fs.Func("occupied", "`N` tubes besides have one job each (0)", kit.IntoCount(&opt.load.Occupied, "tubes"))
		fs.Func("idle", "`N` connections besides are open and silent (0)", kit.IntoCount(&opt.load.Idle, "connections"))
		fs.Func("workers", "mix wake: `N` workers wait for the jobs of all connections\n(as many)", kit.IntoCount(&opt.load.Workers, "workers"))
		fs.Func("duration", "measure for a `TIME`, such as 10s (5s)", kit.Into(&opt.load.Duration, kit.ParseDuration))
		fs.Func("ops", "end after `N` jobs; 0: when the time is over (0)", kit.Into(&opt.load.Ops, parseJobs))
		fs.Func("pid", "process `ID` of the server, to measure its processor\ntime and memory", kit.IntoCount(&opt.load.PID, "a process"))
	})
	kit.AddFlags(cmd.Flags(), "Output", func(fs *pflag.FlagSet) {
		fs.BoolVar(&opt.json, "json", false, "print JSON")
		fs.BoolP("help", "h", false, "print this help")
	})
	opt.target.Define(cmd.Flags())
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
		return json.NewEncoder(stdout).Encode(r)
	}
	return writeResult(stdout, r)
}

// aim tells the load where the server is, and how to speak to it.
func (opt *options) aim() error {
	o, err := opt.target.Options()
	if err != nil {
		return err
	}
	if opt.load.Addr, err = parseServerAddr(opt.target.Addr); err != nil {
		return kit.UsageError("--addr: %w", err)
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

func parseMix(s string) (load.Mix, error) {
	if !slices.Contains(load.Mixes, load.Mix(s)) {
		return "", fmt.Errorf("there are: %s", load.Mixes)
	}
	return load.Mix(s), nil
}

// parseServerAddr takes what -l takes and completes it.
func parseServerAddr(s string) (string, error) {
	a, err := server.ParseAddress(s, server.DefaultPort)
	return a.String(), err
}

// parseBody reads the size of a body; load takes a negative one for none.
func parseBody(s string) (int, error) {
	n, err := kit.ParseSize(s, server.MaxJobSizeLimit)
	if n == 0 {
		return -1, err
	}
	return int(n), err
}

func parseJobs(s string) (int64, error) {
	n, err := kit.ParseNumber(s, "jobs", math.MaxInt64)
	return int64(n), err
}
