package journal

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/kit"
)

const backupLong = `Copy the journal of a running beanpole over the network to the directory DIR, which is
made, or is empty. All that was answered before the command began is in the copy, and of
what was done meanwhile the beginning. The copy is read to see that it is whole;
"beanpole -b DIR" starts from it. It needs the right peek on every tube, because all
bodies are in it.

"beanpole journal copy" does the same on the machine of the server, with the files alone.`

// NewBackup returns the command backup, which copies a journal over the network.
func NewBackup() *cobra.Command {
	var s kit.Session
	var pages kit.AdminPages
	cmd := s.Command("backup", "DIR", "copy the journal of a running server to a directory", func(ctx context.Context, args []string) error {
		a, err := pages.Client(&s.Server)
		if err != nil {
			return err
		}
		return unpack(args[0], func() (io.ReadCloser, error) {
			archive, err := a.GetJournal(ctx)
			if err != nil {
				return nil, err
			}
			return archive.Reader(), nil
		}, s.Out)
	})
	cmd.Long = backupLong
	cmd.Example = "  beanpole backup --admin queue.example.com:11380 --token-file backup.token /backup/beanpole.$(date +%F)"
	pages.Need(cmd.Flags(), "")
	return cmd
}
