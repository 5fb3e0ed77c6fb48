package journal

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/advice"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/journal/binlog"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

const convertLong = `Write the jobs of a journal as files of version 7, from which beanstalkd 1.12 and 1.13 start
with -b on 64-bit machines. Stop the server first. The command does not change the journal.

The files keep ids, states, the order of buried jobs, remaining delays and counters. Pauses,
policies, schedules and the origins of dead jobs are lost, because beanstalkd does not store
them.`

const convertExample = `  beanpole journal convert /var/lib/beanpole --beanstalkd /var/lib/beanstalkd
  chown -R beanstalkd: /var/lib/beanstalkd
  beanstalkd -b /var/lib/beanstalkd -z 65537`

func newConvert() *cobra.Command {
	var out string
	cmd := newCommand("convert DIR --beanstalkd OUT", "write the jobs as beanstalkd files",
		convertLong, convertExample, "DIR", func(w io.Writer, args []string) error {
			if out == "" {
				return exit.UsageError("--beanstalkd is required: the directory for the files (see: beanpole journal convert --help)")
			}
			return convert(args[0], out, w)
		})
	cmd.Flags().StringVar(&out, "beanstalkd", "", "write to the directory `OUT`, which must be empty or\nmissing")
	return cmd
}

func convert(dir, out string, w io.Writer) error {
	if err := checkJournal(dir); err != nil {
		return err
	}
	lock, err := advice.Lock(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if names, err := binlog.Files(vfs.OS, dir); err == nil && len(names) > 0 {
		return fmt.Errorf("directory %s: has beanstalkd files already (%s); start a server there once to import them, or use them unchanged",
			dir, names[0])
	}
	eng := engine.New(engine.Options{})
	if _, err := journal.Load(vfs.OS, dir, eng, 0); err != nil {
		return readError(dir, err)
	}
	return fillEmpty(out, func() error {
		sum, err := binlog.Write(vfs.OS, out, binlog.Options{}, eng)
		if err != nil {
			return readError(out, err)
		}
		fmt.Fprintf(w, "wrote %d jobs in %d files to %s; the user that runs beanstalkd must own them\n", sum.Jobs, sum.Files, out)
		if need := sum.MaxBody + 2; need > beanstalkdMaxJob {
			fmt.Fprintf(w, "start beanstalkd with -z %d or more, or it loses jobs\n", need)
		}
		return nil
	})
}

const beanstalkdMaxJob = 65535 // bytes; default of its -z
