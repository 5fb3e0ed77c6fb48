package journal

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

const copyLong = `Copy a journal to the directory TO, which is created, or must be empty. A server may be
using the journal. The copy has every change that was acknowledged before the command began,
and none after the first that it lacks. It is then read to see that it is whole; "beanpole
-b TO" starts from it. The copy of a member's journal is that of a single server.`

const copyExample = `  beanpole journal copy /var/lib/beanpole /backup/beanpole.$(date +%F)`

func newCopy() *cobra.Command {
	return newCommand("copy DIR TO", "copy a journal, also that of a running server",
		copyLong, copyExample, "DIR TO", func(cmd *cobra.Command, args []string) error {
			return copyJournal(args[0], args[1], cmd.OutOrStdout())
		})
}

func copyJournal(dir, to string, w io.Writer) error {
	return fillEmpty(to, func() error {
		var report wal.Report
		err := readJournal(dir, func() (err error) {
			if err = journal.CheckAdoption(vfs.OS, dir); err == nil {
				err = removeSegments(to) // of the previous attempt
			}
			if err == nil {
				err = wal.Copy(vfs.OS, dir, to)
			}
			if err == nil {
				report, err = journal.Release(vfs.OS, to)
			}
			return err
		})
		switch {
		case err != nil:
			return err
		case report.Segments == 0:
			return fmt.Errorf("directory %s: there is no journal", dir)
		}
		tellCopied(w, report, to)
		return nil
	})
}

// unpackError says what an error of ReadBackup means.
func unpackError(dir string, err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the server has ended the connection before all was sent; its log may say why")
	case errors.Is(err, wal.ErrCorrupt):
		return fmt.Errorf("what came is not whole (the disk of the server may be damaged: \"beanpole journal check\" there): %w", readError(dir, err))
	}
	return err
}

func tellCopied(w io.Writer, report wal.Report, to string) {
	fmt.Fprintf(w, "copied %d records, %d bytes in %d segments, to %s\n", report.Records, report.Bytes, report.Segments, to)
}
