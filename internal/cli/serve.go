package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/daemon"
	"github.com/beanpole-mq/beanpole/internal/daemon/asynclog"
)

const serveLong = `Run the server.

By default, the server listens on 127.0.0.1:11300 (and on [::1]:11300 if IPv6 is available)
and keeps jobs in memory only. Use -b to store them on disk.

All beanstalkd options work, including bundled ones such as -VVp0. If an option is repeated,
the last value wins, except for options marked "repeatable".

Set an option on the command line, in the environment (BEANPOLE_MAX_JOB_SIZE=1000000), or in
a configuration file (max-job-size = 1000000). The command line overrides the environment,
which overrides the file.

Signals:
  TERM, INT   shut down gracefully; send it twice to exit immediately
  USR1        drain: reject new jobs
  HUP         reload the configuration, certificates and log level`

const serveExample = `  beanpole                                     listen on 127.0.0.1:11300
  beanpole -b /var/lib/beanpole                store jobs on disk
  beanpole -l 0.0.0.0 -p 11301                 listen on all IPv4 addresses, port 11301
  beanpole -l 10.0.0.1 -l unix:/run/bean.sock  listen on a network address and a Unix socket`

func newServe() *cobra.Command {
	opt := config.Default()
	cmd := cliutil.NewCommand("serve [options]", "run the server (the default)", serveLong, serveExample, "", func(cmd *cobra.Command, _ []string) error {
		if opt.Version {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "beanpole %s\n", versionOf(cmd))
			return err
		}
		out := asynclog.New(cmd.ErrOrStderr())
		cmd.Root().SetErr(out) // also used for the error that Run prints
		return daemon.Run(cmd.Context(), daemon.Options{Version: versionOf(cmd), Line: config.NewCommandLine(opt, cmd.Flags()), Log: out})
	})
	opt.Define(cmd.Flags())
	return cmd
}
