package queue

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

const backupLong = `Copy the journal of a running beanpole over the network to the directory DIR, which is
made, or is empty. All that was answered before the command began is in the copy, and of
what was done meanwhile the beginning. The copy is read to see that it is whole;
"beanpole -b DIR" starts from it. It needs the right peek on every tube, because all
bodies are in it.

"beanpole journal copy" does the same on the machine of the server, with the files alone.`

// NewBackup returns the command backup, for a program that knows journals. keep unpacks the
// archive that ask returns into a directory, and tells what it has done.
func NewBackup(keep func(dir string, ask func() (io.ReadCloser, error), out io.Writer) error) *cobra.Command {
	var pages adminOptions
	cmd := new(session).command("backup", "DIR", "copy the journal of a running server to a directory", func(ctx context.Context, s *session, args []string) error {
		a, err := s.admin(&pages)
		if err != nil {
			return err
		}
		ask := func() (io.ReadCloser, error) {
			archive, err := a.GetJournal(ctx)
			if err != nil {
				return nil, err
			}
			return archive.Reader(), nil
		}
		return keep(args[0], ask, s.out)
	})
	cmd.GroupID = "admin"
	cmd.Long = backupLong
	cmd.Example = "  beanpole backup --admin queue.example.com:11380 --token-file backup.token /backup/beanpole.$(date +%F)"
	pages.define(cmd.Flags(), "127.0.0.1:"+defaultAdminPort, adminUsage)
	return cmd
}
