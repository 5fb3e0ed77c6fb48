package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/daemon"
)

const configLong = `Check or show the configuration that the server would use.

The options are the options of serve. Each can also be set by an environment variable with
its long name (BEANPOLE_MAX_JOB_SIZE), or in the TOML file of --config or BEANPOLE_CONFIG
(max-job-size = 100000). The command line overrides the environment, which overrides the
file.`

// newConfig returns the command config.
func newConfig() *cobra.Command {
	return cliutil.Group(&cobra.Command{
		Use:     "config COMMAND",
		Short:   "check or show the server's configuration",
		Long:    configLong,
		Example: "  beanpole config check --config /etc/beanpole/beanpole.toml\n  beanpole config explain mail\n  beanpole config print -b /var/lib/beanpole",
	},
		newConfigCommand("check", "", "check whether the server starts with this configuration", "--config /etc/beanpole/beanpole.toml",
			func(s *config.Settings, w io.Writer, _ []string) error { return daemon.Check(s, w) }),
		newConfigCommand("explain", "TUBE", "show the policy of a tube, and the source of each setting", "mail --config /etc/beanpole/beanpole.toml", explainPolicy),
		newConfigCommand("print", "", "print all settings and their sources as a configuration file", "-b /var/lib/beanpole",
			func(s *config.Settings, w io.Writer, _ []string) error { return s.Print(w) }),
	)
}

func newConfigCommand(name, arguments, short, example string, run func(*config.Settings, io.Writer, []string) error) *cobra.Command {
	opt := config.Default()
	use := strings.TrimSpace(name+" "+arguments) + " [options of serve]"
	cmd := cliutil.NewCommand(use, short, "", "  beanpole config "+name+" "+example, arguments, func(cmd *cobra.Command, args []string) error {
		s, err := config.NewCommandLine(opt, cmd.Flags()).Read()
		if err != nil {
			return err
		}
		return run(s, cmd.OutOrStdout(), args)
	})
	opt.Define(cmd.Flags())
	return cmd
}

// explainPolicy prints the policy of a tube from the configuration.
func explainPolicy(s *config.Settings, w io.Writer, args []string) error {
	policies, err := s.Options.TubePolicies()
	if err != nil {
		return err
	}
	var rows [][]any
	for _, v := range policies.Explain(args[0]) {
		from := "default"
		if v.Rule != nil {
			from = v.Rule.String()
		}
		rows = append(rows, []any{v.Name, v.Text, from})
	}
	if err := cliutil.PrintTable(w, "setting value from", rows); err != nil || s.Options.File != "" {
		return err
	}
	_, err = fmt.Fprintf(w, "\nNo configuration file was read; name it with --config. For a running server use \"beanpole policy explain %s\".\n", args[0])
	return err
}
