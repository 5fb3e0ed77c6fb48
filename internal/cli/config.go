package cli

import (
	"io"

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
		Example: "  beanpole config check --config /etc/beanpole/beanpole.toml\n  beanpole config print -b /var/lib/beanpole",
	},
		newConfigCommand("check", "check whether the server starts with this configuration", "--config /etc/beanpole/beanpole.toml", daemon.Check),
		newConfigCommand("print", "print all settings and their sources as a configuration file", "-b /var/lib/beanpole", (*config.Settings).Print),
	)
}

func newConfigCommand(name, short, example string, run func(*config.Settings, io.Writer) error) *cobra.Command {
	opt := config.Default()
	cmd := cliutil.NewCommand(name+" [options of serve]", short, "", "  beanpole config "+name+" "+example, "", func(cmd *cobra.Command, _ []string) error {
		s, err := config.NewCommandLine(opt, cmd.Flags()).Read()
		if err != nil {
			return err
		}
		return run(s, cmd.OutOrStdout())
	})
	opt.Define(cmd.Flags())
	return cmd
}
