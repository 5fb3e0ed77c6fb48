package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/kit"
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
	cmd := &cobra.Command{
		Use:   "config",
		Short: "check or show the server's configuration",
		Long:  configLong,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return kit.UnknownArgument(cmd, args)
			}
			return kit.UsageError("want a command: check or print (see: beanpole config --help)")
		},
	}
	cmd.AddCommand(
		newConfigCommand("check", "say whether the server would start with this configuration", daemon.Check),
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
		Args:                  kit.NoArguments,
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
