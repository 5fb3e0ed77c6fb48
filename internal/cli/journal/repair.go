package journal

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/advice"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

const repairLong = `Make a journal that a server starts with of what is whole in a damaged one. Every
whole record of every file goes to the directory TO, which is made, or is empty;
DIR stays as it is. What is not whole is lost: a job may be missing, or be in an
earlier state, or one that was deleted may be there again.

No server may be running. For a journal without damage the command creates
nothing and ends with exit code 2. The journal of a member of a cluster is not repaired: the other members have what it
had.`

const repairExample = `  beanpole journal repair /var/lib/beanpole /var/lib/beanpole.new
  mv /var/lib/beanpole /var/lib/beanpole.damaged
  mv /var/lib/beanpole.new /var/lib/beanpole`

func newRepair() *cobra.Command {
	return newCommand("repair DIR TO", "make a new journal of what is whole in a damaged one",
		repairLong, repairExample, "DIR TO", func(cmd *cobra.Command, args []string) error {
			return repair(args[0], args[1], cmd.OutOrStdout())
		})
}

func repair(dir, to string, w io.Writer) error {
	if cliutil.IsMember(dir) {
		return cliutil.WithCode(cliutil.ExitJournal, fmt.Errorf("directory %s is that of a member of a cluster, whose journal repair must not change: "+
			"it would differ from those of the other members (%s)", dir, advice.Rejoin(dir)))
	}
	if err := checkJournal(dir); err != nil {
		return err
	}
	lock, err := advice.Lock(dir)
	if err != nil {
		return err
	}
	lock.Close() // inspect asks who has it
	ins := inspection{dir: dir}
	if err := ins.inspect(); err != nil {
		return err
	}
	if len(ins.damage) == 0 {
		return cmp.Or(ins.verdict(), cliutil.WithCode(cliutil.ExitNothing, fmt.Errorf("nothing to repair in %s: %s was not created", dir, to)))
	}
	return fillEmpty(to, func() error {
		if lock, err = advice.Lock(dir); err != nil {
			return err
		}
		records, _, err := wal.Salvage(vfs.OS, dir, to, wal.Options{})
		lock.Close()
		if err != nil {
			return cliutil.WithCode(cliutil.ExitJournal, readError(dir, err))
		}
		for _, d := range ins.damage {
			fmt.Fprintf(w, "%-11s %s\n", "damage", d)
		}
		fmt.Fprintf(w, "%-11s %d records, of which a new journal was made; the old one was not changed\n", "whole", records)
		made := inspection{dir: to}
		if err := made.inspect(); err != nil {
			return err
		}
		made.print(w)
		return made.verdict()
	})
}
