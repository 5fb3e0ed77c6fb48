package journal

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

const rewriteLong = `Let a running server write all jobs from its memory to new journal files, and remove the old
files. Use this if you distrust a disk, or before you stop a server whose journal "beanpole
journal check" finds damaged. The rewrite needs additional disk space for all jobs. Clients
are served during the rewrite. The command does not wait: the server logs "journal rewritten"
at the end.

` + cliutil.AdminNeeds

func newRewrite() *cobra.Command {
	var s cliutil.Session
	cmd := s.AdminCommand("rewrite", "", "let a running server write all jobs to new files", func(ctx context.Context, a *admin.Client, _ []string) error {
		if err := a.RewriteJournal(ctx); err != nil {
			return err
		}
		return s.Print(map[string]bool{"rewriting": true}, "rewriting the journal; the server logs the end")
	})
	cmd.Long = rewriteLong
	cmd.Example = "  beanpole journal rewrite"
	s.DefineJSON(cmd)
	return cmd
}
