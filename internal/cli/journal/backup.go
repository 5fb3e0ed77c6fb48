package journal

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

const backupLong = `Copy the journal of a running server over the network to the directory DIR, which must be empty
or missing. The copy contains every change that was acknowledged before the command started,
and possibly later changes, without gaps. The command reads the copy to check it;
"beanpole -b DIR" starts from it. It requires the peek right on every tube, because the copy
contains all bodies.

"beanpole journal copy" does the same from the files on the server's machine.`

// NewBackup returns the command backup, which copies a journal over the network.
func NewBackup() *cobra.Command {
	var s cliutil.Session
	cmd := s.AdminCommand("backup", "DIR", "copy the journal of a running server to a directory", func(ctx context.Context, a *admin.Client, args []string) error {
		dir := args[0]
		return fillEmpty(dir, func() error {
			answer, err := a.GetJournal(ctx)
			if err != nil {
				return err
			}
			defer answer.Close()
			archive, w := io.Pipe()
			defer archive.Close()
			go func() { w.CloseWithError(answer.Write(w)) }()
			report, err := journal.ReadBackup(vfs.OS, dir, archive)
			if err != nil {
				return unpackError(dir, err)
			}
			tellCopied(s.Out, report, dir)
			return nil
		})
	})
	cmd.Long = backupLong
	cmd.Example = "  beanpole backup --admin queue.example.com:11380 --token-file backup.token /backup/beanpole.$(date +%F)"
	return cmd
}
