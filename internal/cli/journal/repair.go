package journal

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/advice"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

const repairLong = `Make a damaged journal one that a server starts with. Every record that is whole
stays where it is. What is damaged is first copied to files beside the segment,
whose names end in .removed, and then overwritten by filler. What those bytes
said is lost: a job may be missing, or be in an earlier state, or one that was
deleted may be there again. Segments that were renamed get their names again.

No server may be running. A journal that is well is not changed. If the repair
is interrupted it can be run again. The journal of a member of a cluster is not
repaired: the other members have what it had.`

func newRepair() *cobra.Command {
	return newCommand("repair DIR", "keep what is whole in a damaged journal",
		repairLong, "", oneDirectory, func(cmd *cobra.Command, args []string) error {
			return repair(args[0], cmd.OutOrStdout())
		})
}

func repair(dir string, w io.Writer) error {
	if err := refuseMember(dir, "repair", advice.Rejoin(dir)); err != nil {
		return err
	}
	if err := checkJournal(dir); err != nil {
		return err
	}
	lock, err := lockJournal(dir)
	if err != nil {
		return err
	}
	lock.Close() // what follows asks for it again
	planned, err := findDamage(dir)
	if err != nil {
		return err
	}
	if len(planned) == 0 {
		fmt.Fprintln(w, "nothing to repair")
	}
	for _, d := range planned {
		fmt.Fprintf(w, "to repair   %s\n", d)
	}
	repaired, err := wal.Repair(vfs.OS, dir)
	if err != nil {
		return kit.WithCode(kit.ExitJournal, readError(dir, err))
	}
	for _, d := range repaired {
		fmt.Fprintf(w, "kept        %s\n", d.Removed)
	}
	ins := inspection{dir: dir}
	if err := ins.inspect(); err != nil {
		return err
	}
	ins.print(w)
	return ins.verdict()
}
