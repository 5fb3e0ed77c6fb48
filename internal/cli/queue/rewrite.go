package queue

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

const rewriteLong = `Have a running beanpole write all of its jobs, which are in its memory, to new files of
the journal, and remove the old ones, while clients are served: when a disk is suspected, or
before a server stops whose journal "beanpole journal check" finds damaged. It needs as much
additional room as the jobs take. The command does not wait: the log of the server says "the
whole journal was rewritten" when it has ended.

` + adminNeeds

// NewRewrite returns the command rewrite, for the commands about journals: it is the one of them that
// asks the server.
func NewRewrite() *cobra.Command {
	var pages adminOptions
	cmd := newCommand("rewrite", "", "have a running server write all jobs to new files", func(ctx context.Context, s *session, _ []string) error {
		a, err := s.admin(&pages)
		if err != nil {
			return err
		}
		if err := a.RewriteJournal(ctx); err != nil {
			return err
		}
		if s.json {
			return s.printJSON(map[string]bool{"rewriting": true})
		}
		_, err = fmt.Fprintln(s.out, "the journal is being rewritten: the log of the server says when it has ended")
		return err
	})
	cmd.Long = rewriteLong
	cmd.Example = "  beanpole journal rewrite --admin :11380"
	pages.define(cmd.Flags(), "127.0.0.1:"+defaultAdminPort, adminUsage)
	return cmd
}
