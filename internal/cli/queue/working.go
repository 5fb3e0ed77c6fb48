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
	var limit uint
	s := new(session)
	cmd := s.adminCommand("working", "[TUBE...]", "list the reserved jobs, the longest held first", workingLong, func(ctx context.Context, a *admin.Client, args []string) error {
		return s.working(ctx, a, s.tubeNames(args), int(limit))
	})
	cmd.Example = "  beanpole working --limit 5\n  beanpole working 'mail-*' --json | jq 'select(.held > 600)'"
	s.defineTube(cmd, "list the jobs of `TUBES`, like an argument")
	cmd.Flags().UintVarP(&limit, "limit", "n", 100, "list at most `N` jobs; 0 is unlimited")
	return cmd
}

// working prints reserved jobs.
func (s *session) working(ctx context.Context, a *admin.Client, names []string, limit int) error {
	const page = 1000
	var all []admin.ReservedJob
	in := admin.ListReserved{Tube: strings.Join(names, ","), Limit: page}
	for more := true; more; more = in.Cursor != "" && (limit == 0 || len(all) < limit) {
		if limit > 0 {
			in.Limit = min(page, limit-len(all))
		}
		found, err := a.ListReserved(ctx, &in)
		if err != nil {
			return err
		}
		all, in.Cursor = append(all, found.Jobs...), found.Next
	}
	if in.Cursor != "" {
		s.Note("more jobs exist; --limit 0 lists all")
	}
	return cliutil.PrintList(&s.Session, all, "ID TUBE:8 CLASS:8 HELD LEFT TOUCHES WORKER:8 ARGUMENTS:10", func(j *admin.ReservedJob) []any {
		return []any{j.ID, j.Tube, j.Class, ofSeconds(j.Held), ofSeconds(j.TimeLeft), j.Touches, cmp.Or(j.Identity, j.Address), j.Arguments}
	})
}
