package queue

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

const workingLong = `List the reserved jobs of all tubes, the longest held first. HELD is the time since the
reserve, LEFT the time until the TTR expires, TOUCHES the number of touches since the reserve,
and WORKER the identity or the address of the worker.

The list has up to 100 jobs of each worker.`

func newWorking() *cobra.Command {
	var limit int
	s := new(session)
	cmd := s.adminCommand("working", "[TUBE...]", "list the reserved jobs, the longest held first", workingLong, func(ctx context.Context, a *admin.Client, args []string) error {
		found, err := a.ListReserved(ctx, &admin.ListReserved{Tube: strings.Join(s.tubeNames(args), ","), Limit: limit})
		if err != nil {
			return err
		}
		if found.Next != "" {
			s.Note("more jobs exist; 'beanpole jobs --find state:reserved --limit 0' lists all")
		}
		return cliutil.PrintList(&s.Session, found.Jobs, "ID TUBE:8 CLASS:8 HELD LEFT TOUCHES WORKER:8 ARGUMENTS:10", func(j *admin.ReservedJob) []any {
			return []any{j.ID, j.Tube, j.Class, cliutil.OfSeconds(j.Held), cliutil.OfSeconds(j.TimeLeft), j.Touches, cmp.Or(j.Identity, j.Address), j.Arguments}
		})
	})
	cmd.Example = "  beanpole working --limit 5\n  beanpole working 'mail-*' --json | jq 'select(.held > 600)'"
	s.defineTube(cmd, "list the jobs of `TUBES`, in addition to the arguments")
	cmd.Flags().IntVarP(&limit, "limit", "n", 100, "list at most `N` jobs, up to 1000")
	return cmd
}
