package queue

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

const findLong = `Find jobs by what is in their bodies, and by what the server knows of them. A job must meet
all conditions of the query.

The conditions:

  word "some text" /regexp/                 the body has it, or matches
  user.id:17  amount>100  /user/id:17       a value in it, at a path or a JSON pointer
  tube:mail-*  state:buried,delayed         where the job is
  age>10m tries>=3 size>1k pri<1024         also id, left, delay, ttr, timeouts,
                                            releases, buries and kicks

Bodies that are packed (gzip, zlib, base64, PHP, MessagePack) are looked into opened.`

func newFind() *cobra.Command {
	var limit uint
	s := new(session)
	cmd := s.adminCommand("find", "QUERY...", "find jobs in all tubes", findLong, func(ctx context.Context, a *admin.Client, args []string) error {
		return s.find(ctx, a, strings.Join(args, " "), int(limit))
	})
	cmd.Example = "  beanpole find user.id:17 state:buried\n  beanpole find 'tries>=3 \"connection refused\"' tube:mail-* --json | jq -r .body"
	cmd.Flags().UintVarP(&limit, "limit", "n", 100, "list `N` jobs and no more; 0: all")
	return cmd
}

// find prints the jobs that match, page by page of the server's answer.
func (s *session) find(ctx context.Context, a *admin.Client, q string, limit int) error {
	const page = 1000
	b := cliutil.NewBar(s.Err, "jobs")
	defer b.End()
	list, in := jobList{session: s}, admin.SearchAll{Search: admin.Search{Q: &q}, Limit: page}
	for more := true; more; more = in.Cursor != "" && (limit == 0 || list.n < limit) {
		if limit > 0 {
			in.Limit = min(page, limit-list.n)
		}
		found, err := a.SearchAll(ctx, &in)
		if err != nil {
			return err
		}
		for i := range found.Jobs {
			if err := list.add(&found.Jobs[i]); err != nil {
				return err
			}
		}
		if in.Cursor = found.Next; found.Total != nil {
			b.Show(found.Looked, *found.Total, list.n)
		}
	}
	b.End()
	if in.Cursor != "" {
		s.Note("there may be more; --limit 0 lists all")
	}
	return list.print()
}
