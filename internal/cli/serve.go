package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/daemon"
	"github.com/beanpole-mq/beanpole/internal/daemon/logqueue"
)

const serveLong = `Run the server. Without options it listens on 127.0.0.1:11300, and on [::1]:11300
if there is IPv6, and keeps its jobs in memory.

The command "serve" may be left out. All options of beanstalkd work, bundled
letters (-VVp0) included, and later ones override earlier ones; only -l adds up.

Each option can be set by an environment variable too, named after its long
form: BEANPOLE_MAX_JOB_SIZE=1000000, BEANPOLE_LISTEN=10.0.0.1,unix:/run/bean.sock.
And it can stand in a file that --config names: max-job-size = 1000000. The command
line wins over the environment, and that over the file. Defaults are in parentheses
below.`

const serveExample = `  beanpole                                     127.0.0.1:11300
  beanpole -l 0.0.0.0 -p 11301                 every IPv4 address, port 11301
  beanpole -l 10.0.0.1 -l unix:/run/bean.sock  a network and a unix socket
  beanpole -l :: -u nobody -z 1000000          IPv6 and IPv4, 1 MB jobs`

const serveSignals = `  TERM, INT   stop: finish what has begun, close the connections, exit with 0;
              a second one exits at once
  USR1        drain: refuse new jobs from now on, serve the rest
  HUP         read the configuration, the certificates and the log level again`

func newServe() *cobra.Command {
	opt := config.Default()
	long := serveLong + "\n\nSignals:\n" + serveSignals
	cmd := cliutil.NewCommand("serve [options]", "run the server (the default)", long, serveExample, "", func(cmd *cobra.Command, _ []string) error {
		if opt.Version {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "beanpole %s\n", versionOf(cmd))
			return err
		}
		out := logqueue.New(cmd.ErrOrStderr())
		cmd.Root().SetErr(out) // also for what the program ends with
		return daemon.Run(cmd.Context(), daemon.Options{Version: versionOf(cmd), Line: config.NewCommandLine(opt, cmd.Flags()), Log: out})
	})
	opt.Define(cmd.Flags())
	return cmd
}
