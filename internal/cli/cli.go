// Package cli is the command line of the program: it finds the command that is meant, and
// turns what comes of it into an exit code.
//
// This package has the commands of the server's process (serve, config, token, version), help
// and completion. The others are in packages of their own: queue for a person at the keyboard,
// journal, cluster and bench. They share package cliutil.
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
	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/daemon/logqueue"
)

// Run runs the program of a version with the arguments after its name, and returns its exit
// code. A failure is one line on stderr that begins with "beanpole: ".
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
		code = cliutil.ExitCode(err)
	}
	if q, ok := root.ErrOrStderr().(*logqueue.Queue); ok { // the server's
		q.Flush(lastLines)
	}
	return code
}

// lastLines is how long the reader of the server's log may take for the lines before the exit.
const lastLines = time.Second

// withCommand makes the bare command line, which is beanstalkd's, that of serve.
func withCommand(args []string) []string {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") && args[0] != "--help" && args[0] != "-h" {
		return append([]string{"serve"}, args...)
	}
	return args
}

// newRoot returns all commands.
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
		// The error of "beanpole bogus -p 1" is about bogus, not about -p.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		SilenceErrors:      true,
		SilenceUsage:       true,
		Annotations:        map[string]string{versionKey: version},
	}
	root.SetFlagErrorFunc(flagError)
	useTemplates(root)
	cliutil.AddGroup(root, "server", "Run a server:", newServe(), newConfig(), journal.New(), cluster.New())
	queue.AddTo(root)
	if ping, _, err := root.Find([]string{"ping"}); err == nil {
		addPID(ping)
	}
	const others = "others"
	cliutil.AddGroup(root, others, "Others:", newToken(), bench.New(), newVersion())
	backup := journal.NewBackup()
	backup.GroupID = "admin"
	root.AddCommand(backup)
	addManual(root)
	root.SetHelpCommand(newHelp(root))
	addCompletion(root, others)
	root.AddCommand(newTopics()...)
	return root
}

// flagError says what is wrong with an option. One that comes before its command is taken
// for one of the server.
func flagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok && cmd.Name() == "serve" {
		name, dashes := e.GetSpecifiedName(), "--"
		if e.GetSpecifiedShortnames() != "" {
			name, dashes = name[:1], "-"
		}
		if instead := config.Removed[name]; instead != "" {
			return cliutil.UsageError("the server has no option %s%s; %s", dashes, name, instead)
		}
		if queue.HasOption(name) {
			return cliutil.UsageError("the server has no option %s%[2]s; the options of a command come after it: beanpole tubes %[1]s%[2]s ...", dashes, name)
		}
	}
	return cliutil.FlagError(cmd, err)
}
