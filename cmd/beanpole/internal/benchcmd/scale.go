package benchcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/cmd/beanpole/internal/command"
	"github.com/beanpole-mq/beanpole/internal/bench"
)

// scaleOptions are what the command line of bench scale says.
type scaleOptions struct {
	servers servers
	bench   bench.Options
	only    []string // names of experiments

	markdown, json bool
}

const scaleLong = `Start two servers again and again and measure how they behave when something is
large: long queues (memory, backlog), many jobs that come due at once (due),
connections that flood the server (fairness), many tubes (observers), and clients
that ask much of it with few commands (expensive). All of it takes most of an
hour and 4 GB of memory.

stalls, which has to be asked for, compares two versions of beanpole: how long
clients wait while others list, export, move, kick and clear very many jobs, while
jobs come due, connections end or come in thousands, metrics are scraped, or the
configuration is read again.`

const scaleExample = `  beanpole bench scale --against beanstalkd --markdown
  beanpole bench scale --against beanstalkd --only memory,due --jobs 100000
  beanpole bench scale --against beanstalkd --only fairness --rounds 5
  beanpole bench scale --only stalls --jobs 5000000 --markdown \
      --against '/usr/bin/beanpole --admin unix:{dir}/admin.socket' \
      --server './beanpole --admin unix:{dir}/admin.socket'`

func newScale() *cobra.Command {
	var opt scaleOptions
	cmd := &cobra.Command{
		Use:                   "scale [options]",
		Short:                 "compare two servers in what is large",
		Long:                  scaleLong,
		Example:               scaleExample,
		DisableFlagsInUseLine: true,
		Args:                  command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opt.check(); err != nil {
				return err
			}
			return interruptible(cmd, opt.run)
		},
	}
	opt.define(cmd)
	return cmd
}

func (opt *scaleOptions) define(cmd *cobra.Command) {
	s := &opt.bench
	command.AddFlags(cmd.Flags(), "Servers", func(fs *pflag.FlagSet) {
		fs.StringVar(&opt.servers.against, "against", "", "`COMMAND` that starts the server to compare with, as in\nbench --against")
		fs.StringVar(&opt.servers.ours, "server", "", "`COMMAND` that starts the other one (this binary)")
	})
	command.AddFlags(cmd.Flags(), "Experiments", func(fs *pflag.FlagSet) {
		fs.Func("only", "`NAMES` of the experiments, with commas between them\n(all)", command.Into(&opt.only, parseExperiments))
		fs.Func("rounds", "run each experiment on each server `N` times (3)", command.IntoCount(&s.Rounds, "rounds"))
		fs.Func("duration", "measure each load for a `TIME`, such as 10s (5s)", command.Into(&s.Duration, command.ParseDuration))
		fs.Func("jobs", "`N` jobs (memory: 2000000, backlog: 10000000,\ndue: 1000000, expensive: 500000, stalls: 1000000)", command.Into(&s.Jobs, parseJobs))
		fs.Func("tubes", "`N` tubes in observers (100000, and 10000 on the server\nto compare with), expensive (30000) and stalls (20000)", command.IntoCount(&s.Tubes, "tubes"))
		fs.Func("settle", "give a server a `TIME` to give memory back (15s)", command.Into(&s.Settle, command.ParseDuration))
	})
	command.AddFlags(cmd.Flags(), "Output", func(fs *pflag.FlagSet) {
		fs.BoolVar(&opt.markdown, "markdown", false, "print tables in Markdown")
		fs.BoolVar(&opt.json, "json", false, "print JSON, an object a line")
		fs.BoolP("help", "h", false, "print this help")
	})
}

// check refuses options that do not go together.
func (opt *scaleOptions) check() error {
	switch {
	case opt.markdown && opt.json:
		return command.UsageError("options --markdown and --json exclude each other")
	case opt.servers.against == "":
		return command.UsageError("bench scale needs --against COMMAND")
	}
	return nil
}

func (opt *scaleOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
	o := opt.bench
	o.Rounds = cmp.Or(o.Rounds, 3)
	o.Progress = progress(stderr)
	var err error
	if o.A, o.B, _, err = opt.servers.commands(); err != nil {
		return err
	}
	experiments := bench.Scale(&o)
	if opt.only != nil {
		experiments = slices.DeleteFunc(bench.ByName(&o), func(e bench.Experiment) bool { return !slices.Contains(opt.only, e.Name) })
	}
	reports, err := bench.Run(ctx, o, experiments)
	return errors.Join(err, printReports(stdout, reports, opt.markdown, opt.json)) // what succeeded is worth printing
}

// parseExperiments reads names with commas between them.
func parseExperiments(s string) ([]string, error) {
	var known []string
	for _, e := range bench.ByName(new(bench.Options)) {
		known = append(known, e.Name)
	}
	names := strings.Split(s, ",")
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there are: %s", strings.Join(known, ", "))
		}
	}
	return names, nil
}
