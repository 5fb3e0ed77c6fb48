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

const copyLong = `Copy a journal to the directory TO, which must be empty or missing. A server can use the
journal. The copy contains every change that was acknowledged before the command started, and
possibly later changes, without gaps. The command reads the copy to check it; "beanpole -b TO"
starts from it. The copy of a member's journal is the journal of a single server.`

const copyExample = `  beanpole journal copy /var/lib/beanpole /backup/beanpole.$(date +%F)`

func newCopy() *cobra.Command {
	return newCommand("copy DIR TO", "copy a journal, even while a server uses it",
		copyLong, copyExample, "DIR TO", copyJournal)
}

func copyJournal(w io.Writer, args []string) error {
	dir, to := args[0], args[1]
	return fillEmpty(to, func() error {
		var report wal.Report
		err := readJournal(dir, func() (err error) {
			if err = journal.CheckAdoption(vfs.OS, dir); err == nil {
				err = removeFiles(to) // left behind by the previous attempt
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
			return fmt.Errorf("directory %s contains no journal", dir)
		}
		tellCopied(w, report, to)
		return nil
	})
}

// unpackError explains an error of ReadBackup.
func unpackError(dir string, err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the server closed the connection before the end of the journal; its log might have the reason")
	case errors.Is(err, wal.ErrCorrupt):
		return fmt.Errorf("the copy is incomplete; the server's disk might be damaged: run \"beanpole journal check\" there: %w", readError(dir, err))
	}
	return err
}

func tellCopied(w io.Writer, report wal.Report, to string) {
	fmt.Fprintf(w, "copied %d records, %d bytes in %d segments, to %s\n", report.Records, report.Bytes, report.Segments, to)
}
