// Package journal implements "beanpole journal": the commands that check, dump, repair,
// convert, copy and rewrite the journal of a server.
//
// Commands that change nothing work while a server writes the journal. The other commands
// take the server's lock.
package journal

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

const long = `Check, dump, repair, copy, convert or rewrite a journal: the directory in which "beanpole -b
DIR" stores its jobs. doc/journal.md describes its files.`

const example = `  beanpole journal check /var/lib/beanpole
  beanpole journal dump --live /var/lib/beanpole
  beanpole journal repair /var/lib/beanpole /var/lib/beanpole.new
  beanpole journal copy /var/lib/beanpole /backup/beanpole
  beanpole journal convert /var/lib/beanpole --beanstalkd /var/lib/beanstalkd
  beanpole journal rewrite`

// New returns the command journal.
func New() *cobra.Command {
	return cliutil.Group(&cobra.Command{
		Use:     "journal COMMAND",
		Short:   "check, dump, repair, copy, convert or rewrite a journal",
		Long:    long,
		Example: example,
	}, newCheck(), newDump(), newRepair(), newConvert(), newCopy(), newRewrite())
}

// newCommand returns a command about the journal in the directory given as its first
// argument. The directory is checked before the command runs.
func newCommand(use, short, long, example, args string, run func(w io.Writer, args []string) error) *cobra.Command {
	return cliutil.NewCommand(use, short, long, example, args, func(cmd *cobra.Command, args []string) error {
		if _, err := vfs.OS.List(args[0]); err != nil {
			return exit.WithCode(exit.Journal, err)
		}
		return run(cmd.OutOrStdout(), args)
	})
}
