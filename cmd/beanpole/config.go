package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/cmd/beanpole/internal/command"
	"github.com/beanpole-mq/beanpole/cmd/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/server"
)

const configLong = `Show how the server would be configured.

The options are those of serve. Each can also be set by an environment variable,
named after its long form (BEANPOLE_MAX_JOB_SIZE), or in a TOML file under its
long name (max-job-size = 100000), which --config or BEANPOLE_CONFIG names.
The command line wins over the environment, and that over the file.`

// newConfig is the command config.
func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "check or show the server's configuration",
		Long:  configLong,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.UnknownArgument(cmd, args)
			}
			return command.UsageError("want a command: check or print (see: beanpole config --help)")
		},
	}
	cmd.AddCommand(
		newConfigCommand("check", "say whether the server would start with this configuration", checkConfig),
		newConfigCommand("print", "show each setting and where it comes from, as a configuration file", (*config.Settings).Print),
	)
	return cmd
}

func newConfigCommand(name, short string, run func(*config.Settings, io.Writer) error) *cobra.Command {
	opt := config.Default()
	cmd := &cobra.Command{
		Use:                   name + " [options of serve]",
		Short:                 short,
		DisableFlagsInUseLine: true,
		Args:                  command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := config.NewCommandLine(opt, cmd.Flags()).Read()
			if err != nil {
				return err
			}
			return run(s, cmd.OutOrStdout())
		},
	}
	opt.Define(cmd.Flags())
	return cmd
}

// checkPorts looks the ports up that are names of services.
func checkPorts(opt *config.Options, endpoints []config.Endpoint) error {
	addrs := make([]server.Address, 0, len(endpoints)+1)
	for _, e := range endpoints {
		addrs = append(addrs, e.Address)
	}
	if opt.Admin.Addr != "" {
		addr, err := opt.Admin.Address()
		if err != nil {
			return err
		}
		addrs = append(addrs, addr)
	}
	for _, a := range addrs {
		if a.Path != "" {
			continue
		}
		if _, err := net.LookupPort("tcp", a.Port); err != nil {
			return command.UsageError("listen on %s: unknown service %q (want the number of a port, or a name from /etc/services)", a, a.Port)
		}
	}
	return nil
}

// checkConfig looks for what is wrong as far as it can be known without opening
// sockets or files.
func checkConfig(s *config.Settings, w io.Writer) error {
	opt := s.Options
	endpoints, err := opt.Endpoints()
	if err != nil {
		return err
	}
	if err := checkPorts(opt, endpoints); err != nil {
		return err
	}
	if _, err := opt.QueueLimits(); err != nil {
		return err
	}
	sec, err := newSecurity(opt, endpoints, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if _, err := lookupAccount(opt.User); err != nil {
		return err
	}
	if dir := opt.Journal.Dir; dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return command.WithCode(command.ExitJournal, fmt.Errorf("journal: %s is not a directory (it must exist)", dir))
		}
	}
	others, err := readOthers(opt)
	if err != nil {
		return err
	}
	for _, warning := range append(certificateWarnings(sec.expiries(), time.Now()), otherWarnings(opt, others)...) {
		fmt.Fprintln(w, "warning:", warning)
	}
	fmt.Fprintln(w, "the configuration is good")
	return nil
}
