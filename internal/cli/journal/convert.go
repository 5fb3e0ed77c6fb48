package journal

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/advice"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/journal/binlog"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

const convertLong = `Write the jobs of a journal as files that beanstalkd starts from with -b: the way
back. They are of version 7, which beanstalkd 1.12 and 1.13 read on 64-bit
machines. No server may be running. The journal is not changed.

On disk beanstalkd has no pauses, no policies, and no tube that a policy has moved a job out
of. The command leaves them out, and says so. It keeps all else: ids, states, the order of
buried jobs, what is left of delays, counters.`

const convertExample = `  beanpole journal convert /var/lib/beanpole --beanstalkd /var/lib/beanstalkd
  chown -R beanstalkd: /var/lib/beanstalkd
  beanstalkd -b /var/lib/beanstalkd -z 65537`

func newConvert() *cobra.Command {
	var out string
	cmd := newCommand("convert DIR --beanstalkd OUT", "write the jobs as files of beanstalkd",
		convertLong, convertExample, "DIR", func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return cliutil.UsageError("option --beanstalkd says where to write (see: %s --help)", cmd.CommandPath())
			}
			return convert(args[0], out, cmd.OutOrStdout())
		})
	cmd.Flags().StringVar(&out, "beanstalkd", "", "write to the directory `OUT`, which is made, or is\nempty")
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
		return fmt.Errorf("directory %s: has files of beanstalkd already (%s): start a server there once, which takes them over, or use them as they are",
			dir, names[0])
	}
	eng := engine.New(engine.Options{})
	if _, err := journal.Load(vfs.OS, dir, eng, 0); err != nil {
		return readError(dir, err)
	}
	if _, err := makeEmpty(out); err != nil {
		return err
	}
	theirs, err := advice.Lock(out)
	if err != nil {
		return err
	}
	defer theirs.Close()
	sum, err := binlog.Write(vfs.OS, out, binlog.Options{}, eng)
	if err != nil {
		return readError(out, err)
	}
	fmt.Fprintf(w, "wrote %d jobs, %d bytes in %d files, to %s\n", sum.Jobs, sum.Bytes, sum.Files, out)
	tellConverted(w, eng, sum, out)
	return nil
}

const beanstalkdMaxJob = 65535 // bytes; its default -z

// tellConverted tells what the files need.
func tellConverted(w io.Writer, eng *engine.Engine, sum binlog.Summary, out string) {
	if need := sum.MaxBody + 2; need > beanstalkdMaxJob {
		fmt.Fprintf(w, "give beanstalkd -z %d or more, or it loses jobs\n", need)
	}
	origins := 0
	for c := range eng.Snapshots {
		if c.Origin != "" {
			origins++
		}
	}
	if origins > 0 {
		fmt.Fprintf(w, "the origin of jobs that a policy has moved is left out: %d\n", origins)
	}
	for c := range eng.Pauses {
		if c.Due > time.Now().UnixNano() {
			fmt.Fprintf(w, "the pause of tube %s is left out\n", c.Tube)
		}
	}
	for c := range eng.PoliciesSet() {
		fmt.Fprintf(w, "the policy of %s is left out: %s\n", c.Tube, cliutil.Line(strings.Join(journal.EntryOf(&c).Settings, " ")))
	}
	fmt.Fprintf(w, "the user that beanstalkd runs as must own %s and what is in it\n", out)
}
