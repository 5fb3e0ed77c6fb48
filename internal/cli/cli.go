// Package cli implements the command line of the program.
//
// It contains the commands serve, config, token, version, help and completion. Packages
// queue, journal, cluster and bench contain the other commands. All of them share package
// cliutil.
package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/cli/bench"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/cli/cluster"
	"github.com/beanpole-mq/beanpole/internal/cli/journal"
	"github.com/beanpole-mq/beanpole/internal/cli/queue"
	"github.com/beanpole-mq/beanpole/internal/daemon/asynclog"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

// Run runs the program with its arguments, and returns its exit code. It reports a
// failure as one line on stderr, which starts with "beanpole: ".
func Run(version string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot(version)
	root.SetArgs(withCommand(args))
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	code := 0
	if err != nil {
		fmt.Fprintf(root.ErrOrStderr(), "beanpole: %s\n", cliutil.Line(strings.ReplaceAll(err.Error(), "\n", "; ")))
		code = exit.Code(err)
	}
	if q, ok := root.ErrOrStderr().(*asynclog.Queue); ok { // the server's log
		q.Flush(lastLines)
	}
	return code
}

// lastLines is the maximum time for writing the last lines of the log before the exit.
const lastLines = time.Second

// withCommand inserts serve into a command line without a command, for compatibility with
// beanstalkd.
func withCommand(args []string) []string {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") && args[0] != "--help" && args[0] != "-h" {
		return append([]string{"serve"}, args...)
	}
	return args
}

// newRoot returns the root command, with all other commands.
func newRoot(version string) *cobra.Command {
	root := &cobra.Command{
		Use:                   "beanpole [COMMAND] [options]",
		Short:                 "a work queue server that speaks the beanstalk protocol",
		Long:                  rootLong,
		Example:               rootExample,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs, // RunE reports them
		RunE: func(cmd *cobra.Command, args []string) error {
			return cliutil.UnknownArgument(cmd, args)
		},
		// The error for "beanpole bogus -p 1" must be about bogus, not about -p.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		SilenceErrors:      true,
		SilenceUsage:       true,
		Annotations:        map[string]string{versionKey: version},
	}
	root.SetFlagErrorFunc(flagError)
	useTemplates(root)
	cliutil.AddGroup(root, "server", "Run a server:", newServe(), newConfig(), journal.New(), cluster.New())
	queue.AddTo(root)
	const others = "others"
	cliutil.AddGroup(root, others, "Others:", newToken(), bench.New(), newVersion())
	backup := journal.NewBackup()
	backup.GroupID = "admin"
	root.AddCommand(backup)
	addManual(root)
	root.SetHelpCommand(newHelp(root))
	root.SetCompletionCommandGroupID(others)
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	completion.Short = "print a completion script for a shell"
	root.AddCommand(newTopics()...)
	return root
}

// flagError explains an invalid option. Options before a command are options of the
// server.
func flagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok && cmd.Name() == "serve" {
		name, dashes := e.GetSpecifiedName(), "--"
		if e.GetSpecifiedShortnames() != "" {
			name, dashes = name[:1], "-"
		}
		if queue.HasOption(name) {
			return exit.UsageError("unknown server option %s%[2]s; give options of a command after the command: beanpole tubes %[1]s%[2]s ...", dashes, name)
		}
	}
	return exit.UsageError("%w (see: %s --help)", err, cmd.CommandPath())
}
