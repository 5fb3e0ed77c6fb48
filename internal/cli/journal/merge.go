package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/advice"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/journal/binlog"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

const mergeLong = `Take the jobs of the directory FROM into the journal in DIR: those of beanstalkd's
files, or of another journal. No server may be running on either. FROM is not
changed, but for the file "lock". DIR may be empty, or have files of beanstalkd,
which are taken over first, as a server does.

A job keeps its id unless the journal in DIR has given out that one or a higher
one before, or it is above 9007199254740991 (2^53 - 1), where only a fault can
have brought it; then it gets a new one, which is higher than all. Old and new ids of
all jobs are written to a table in DIR, merge-TIME.ids: a line for each job, the
old id, a tab, the new one. All else is kept: tube, state, what is left of delays,
counters. Buried jobs come after those that DIR has. Pauses and policies that were set are left out, and told.

If it fails or is interrupted, nothing is merged, and it can be repeated. What
was merged before is refused.`

const mergeExample = `  mkdir /var/lib/beanstalkd.new
  mv /var/lib/beanpole/binlog.* /var/lib/beanstalkd.new
  beanpole journal merge /var/lib/beanpole /var/lib/beanstalkd.new`

func newMerge() *cobra.Command {
	return newCommand("merge DIR FROM", "take in the jobs of beanstalkd's files, or of another journal",
		mergeLong, mergeExample, "DIR FROM", func(cmd *cobra.Command, args []string) error {
			if err := checkDirectory(args[1]); err != nil {
				return err
			}
			return mergeJobs(args[0], args[1], cmd.OutOrStdout())
		})
}

func mergeJobs(dir, from string, w io.Writer) error {
	if same, err := sameFile(dir, from); err != nil || same {
		if err == nil {
			err = kit.UsageError("%s and %s are the same directory: move what is to be merged to one of its own", dir, from)
		}
		return err
	}
	if err := refuseMember(dir, "merge", "'beanpole journal dump --live --json FROM | beanpole import --addr ADDR' puts the jobs as a client"); err != nil {
		return err
	}
	r, err := journal.Merge(vfs.OS, dir, from, journal.Options{Epoch: time.Now().UnixNano()})
	if err != nil {
		return mergeError(dir, r.Begun, err)
	}
	if r.Adopted != nil {
		fmt.Fprintf(w, "took over the files of beanstalkd in %s\n", dir)
		printDamage(w, r.Adopted)
	}
	if r.Binlog != nil {
		printDamage(w, r.Binlog)
	}
	fmt.Fprintf(w, "merged %d jobs from %s into %s; %d have new ids\n", r.Jobs, from, dir, r.NewIDs)
	if r.Table != "" {
		fmt.Fprintf(w, "old and new ids are in %s\n", r.Table)
	}
	tellLeftOut(w, r.LeftOut)
	fmt.Fprintf(w, "the user that the server runs as must own %s and what is in it\n", dir)
	fmt.Fprintf(w, "start no server on %s again: its jobs would be done twice\n", from)
	if r.Binlog != nil && r.Binlog.Damaged() || r.Adopted != nil && r.Adopted.Damaged() {
		return errors.New("files of beanstalkd are damaged: what is whole was merged, jobs may be missing (keep the files)")
	}
	return nil
}

func sameFile(a, b string) (bool, error) {
	x, err := os.Stat(a)
	if err != nil {
		return false, kit.WithCode(kit.ExitJournal, err)
	}
	y, err := os.Stat(b)
	if err != nil {
		return false, kit.WithCode(kit.ExitJournal, err)
	}
	return os.SameFile(x, y), nil
}

// mergeError says why nothing was merged.
func mergeError(dir string, begun bool, err error) error {
	if _, mixed := errors.AsType[*journal.MixedError](err); mixed {
		return kit.WithCode(kit.ExitJournal, advice.Explain(dir, err))
	}
	hint := "nothing was merged"
	switch {
	case errors.Is(err, vfs.ErrLocked):
		hint = "stop the server first; nothing was merged"
	case errors.Is(err, wal.ErrCorrupt):
		hint = "nothing was merged; 'beanpole journal repair' first"
	case begun:
		hint = "repeat it: what has been written is removed first, or all was done, and it says so"
	}
	told := fmt.Errorf("%s (%s)", advice.Plain(err), hint)
	if errors.Is(err, vfs.ErrLocked) || errors.Is(err, wal.ErrCorrupt) {
		return kit.WithCode(kit.ExitJournal, told)
	}
	return told
}

func printDamage(w io.Writer, r *binlog.Report) {
	for _, line := range r.Damage() {
		fmt.Fprintf(w, "damage: %s\n", line)
	}
}
