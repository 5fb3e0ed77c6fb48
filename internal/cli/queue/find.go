package queue

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

const findLong = `Find jobs by their bodies and attributes. A job must meet all conditions of the query:

  word "some text" /regexp/            text in the body
  user.id:17  amount>100  /user/id:17  value in the body, at a path or a JSON pointer
  tube:mail-*  state:buried,delayed    tube and state
  age>10m tries>=3 size>1k pri<1024    number or time; also id, left, delay, ttr,
                                       timeouts, releases, buries and kicks

Packed bodies (gzip, zlib, base64, PHP, MessagePack) are decoded.`

func newFind() *cobra.Command {
	var limit uint
	s := new(session)
	cmd := s.adminCommand("find", "QUERY...", "find jobs in all tubes", findLong, func(ctx context.Context, a *admin.Client, args []string) error {
		return s.find(ctx, a, strings.Join(args, " "), int(limit))
	})
	cmd.Example = "  beanpole find user.id:17 state:buried\n  beanpole find 'tries>=3 \"connection refused\"' tube:mail-* --json | jq -r .body"
	cmd.Flags().UintVarP(&limit, "limit", "n", 100, "list at most `N` jobs; 0 is unlimited")
	return cmd
}

// find prints the jobs that match.
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
		s.Note("more jobs might match; --limit 0 lists all")
	}
	return list.print()
}
