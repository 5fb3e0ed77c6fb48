package journal

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/advice"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

const repairLong = `Write every undamaged record of a damaged journal to a new journal in the directory TO, which
must be empty or missing. The command does not change DIR. Damaged records are lost: jobs can
be missing, be in an earlier state, or reappear after their deletion.

Stop the server first. If the journal is undamaged, the command creates nothing and exits
with code 2. It refuses the journal of a cluster member: the other members have its jobs.`

const repairExample = `  beanpole journal repair /var/lib/beanpole /var/lib/beanpole.new
  mv /var/lib/beanpole /var/lib/beanpole.damaged
  mv /var/lib/beanpole.new /var/lib/beanpole`

func newRepair() *cobra.Command {
	return newCommand("repair DIR TO", "write a new journal from a damaged one",
		repairLong, repairExample, "DIR TO", repair)
}

func repair(w io.Writer, args []string) error {
	dir, to := args[0], args[1]
	if advice.IsMember(dir) {
		return exit.WithCode(exit.Journal, fmt.Errorf("directory %s belongs to a cluster member: "+
			"a repaired journal would differ from those of the other members (%s)", dir, advice.Rejoin(dir)))
	}
	if err := checkJournal(dir); err != nil {
		return err
	}
	lock, err := advice.Lock(dir)
	if err != nil {
		return err
	}
	lock.Close() // inspect asks for the owner of the lock
	ins := inspection{dir: dir}
	if err := ins.inspect(); err != nil {
		return err
	}
	if len(ins.damage) == 0 {
		return cmp.Or(ins.verdict(), exit.WithCode(exit.Nothing, fmt.Errorf("nothing to repair in %s: %s was not created", dir, to)))
	}
	return fillEmpty(to, func() error {
		if lock, err = advice.Lock(dir); err != nil {
			return err
		}
		records, _, err := wal.Salvage(vfs.OS, dir, to, wal.Options{})
		lock.Close()
		if err != nil {
			return exit.WithCode(exit.Journal, readError(dir, err))
		}
		for _, d := range ins.damage {
			fmt.Fprintf(w, "%-11s %s\n", "damage", d)
		}
		fmt.Fprintf(w, "%-11s %d records written to the new journal; the old journal is unchanged\n", "whole", records)
		made := inspection{dir: to}
		if err := made.inspect(); err != nil {
			return err
		}
		made.print(w)
		return made.verdict()
	})
}
