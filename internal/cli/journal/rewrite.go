package journal

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

const rewriteLong = `Have a running beanpole write all of its jobs, which are in its memory, to new files of
the journal, and remove the old ones, while clients are served: when a disk is suspected, or
before a server stops whose journal "beanpole journal check" finds damaged. It needs as much
additional room as the jobs take. The command does not wait: the log of the server says "the
whole journal was rewritten" when it has ended.

` + cliutil.AdminNeeds

func newRewrite() *cobra.Command {
	var s cliutil.Session
	cmd := s.AdminCommand("rewrite", "", "have a running server write all jobs to new files", func(ctx context.Context, a *admin.Client, _ []string) error {
		if err := a.RewriteJournal(ctx); err != nil {
			return err
		}
		return s.Print(map[string]bool{"rewriting": true}, "the journal is being rewritten: the log of the server says when it has ended")
	})
	cmd.Long = rewriteLong
	cmd.Example = "  beanpole journal rewrite --admin :11380"
	s.DefineJSON(cmd)
	return cmd
}
