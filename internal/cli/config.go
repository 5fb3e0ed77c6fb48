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

const configLong = `Show how the server would be configured.

The options are those of serve. Each can also be set by an environment variable,
named after its long form (BEANPOLE_MAX_JOB_SIZE), or in a TOML file under its
long name (max-job-size = 100000), which --config or BEANPOLE_CONFIG names.
The command line wins over the environment, and that over the file.`

// newConfig is the command config.
func newConfig() *cobra.Command {
	return cliutil.Group(&cobra.Command{
		Use:     "config COMMAND",
		Short:   "check or show the server's configuration",
		Long:    configLong,
		Example: "  beanpole config check --config /etc/beanpole/beanpole.toml\n  beanpole config explain mail\n  beanpole config print -b /var/lib/beanpole",
	},
		newConfigCommand("check", "", "say whether the server would start with this configuration", "--config /etc/beanpole/beanpole.toml",
			func(s *config.Settings, w io.Writer, _ []string) error { return daemon.Check(s, w) }),
		newConfigCommand("explain", "TUBE", "show the policy of a tube, and where each setting of it comes from", "mail --config /etc/beanpole/beanpole.toml", explainPolicy),
		newConfigCommand("print", "", "show each setting and where it comes from, as a configuration file", "-b /var/lib/beanpole",
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

// explainPolicy shows which policy the configuration gives to a tube.
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
