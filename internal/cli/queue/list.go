package queue

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/op"
)

const jobsLong = `List the jobs of a tube, or with --find the matching jobs of all tubes, with the start of each
body. Jobs are sorted by state: ready jobs in the order of reservation, reserved and delayed
jobs by the time left, and buried jobs in the order of burial. HOLDER is the connection that
holds a reserved job; see 'beanpole connections'. REASON is the error of the last attempt, or the
end of that attempt, such as timeout.

With --json, each line is a job with its body. Bodies larger than 1 MiB are omitted; 'beanpole
export' writes all of them.

With --find, a job must meet all conditions of QUERY:
  word "some text" /regexp/            text in the body
  reason:SMTP                          reason of the last failure, or timeout, closed ...
  class:*Mail                          class or task of a known framework
  user.id:17  amount>100  /user/id:17  value in the body, at a path or a JSON pointer
  tube:mail-*  state:buried,delayed    tube and state
  age>10m tries>=3 size>1k pri<1024    number or time; also id, left, held, touches,
                                       buried, delay, ttr, timeouts, releases, kicks
  not state:ready  tries>3 or age>1h   negated condition; one of two conditions
Packed bodies (gzip, zlib, base64, PHP, MessagePack) are decoded.`

func newJobs() *cobra.Command {
	var query string
	var limit uint
	s := new(session)
	cmd := s.adminCommand("jobs", "[TUBE]", "list the jobs of a tube, or find jobs", jobsLong, func(ctx context.Context, a *admin.Client, args []string) error {
		tube, err := s.oneTube(args)
		if err != nil && (query == "" || !errors.Is(err, errNoTube)) {
			return err
		}
		if s.states != nil {
			query += " state:" + strings.Join(s.states, ",")
		}
		return s.find(ctx, a, tube, query, int(limit))
	})
	cmd.Example = "  beanpole jobs mail --state buried\n  beanpole jobs mail --limit 0 --json | jq -r .body\n  beanpole jobs --find 'user.id:17 tries>=3' --state buried"
	s.defineTube(cmd, "list the jobs of `TUBE`, instead of the argument")
	s.defineStates(cmd, op.States, "list jobs in these")
	cmd.Flags().StringVarP(&query, "find", "q", "", "list the jobs that match `QUERY`")
	cmd.Flags().UintVarP(&limit, "limit", "n", 100, "list at most `N` jobs; 0 is unlimited")
	return cmd
}

// find prints the jobs of a tube, or of all tubes, that match q.
func (s *session) find(ctx context.Context, a *admin.Client, tube, q string, limit int) error {
	const page = 1000
	b := cliutil.NewProgress(s.Err)
	defer b.End()
	var rows [][]any
	n := 0
	in := admin.SearchTube{OfTube: admin.OfTube{Tube: tube}, SearchAll: admin.SearchAll{Search: admin.Search{Q: &q}, Limit: page}}
	for more := true; more; more = in.Cursor != "" && (limit == 0 || n < limit) {
		if limit > 0 {
			in.Limit = min(page, limit-n)
		}
		var found admin.Found
		var err error
		if tube == "" {
			found, err = a.SearchAll(ctx, &in.SearchAll)
		} else {
			found, err = a.SearchTube(ctx, &in)
		}
		if err != nil {
			return err
		}
		n += len(found.Jobs)
		for i := range found.Jobs {
			if !s.JSON {
				rows = append(rows, jobRow(&found.Jobs[i]))
			} else if err := s.PrintJSON(&found.Jobs[i]); err != nil {
				return err
			}
		}
		if in.Cursor = found.Next; found.Total != nil {
			b.Show(found.Looked, *found.Total)
		}
	}
	b.End()
	if in.Cursor != "" {
		s.Note("more jobs might match; --limit 0 lists all")
	}
	if s.JSON {
		return nil
	}
	return cliutil.PrintTable(s.Out, "ID TUBE:8 STATE PRI AGE LEFT HOLDER TRIES REASON:10 BYTES BODY:10", rows)
}

// jobRow returns the row of a job in a table.
func jobRow(j *admin.Job) []any {
	var left, holder, reason any
	if j.State == "delayed" || j.State == "reserved" {
		left = cliutil.OfSeconds(j.TimeLeft)
	}
	if j.ReservedBy > 0 {
		holder = j.ReservedBy
	}
	if j.Failure != nil {
		reason = beginning([]byte(cmp.Or(j.Failure.Reason, j.Failure.Policy, j.Failure.End)))
	}
	return []any{j.ID, j.Tube, j.State, j.Priority, cliutil.OfSeconds(j.Age), left, holder, j.Reserves, reason, j.Size, beginning(j.Bytes())}
}

// bodyWidth is the maximum number of characters of a body in a table.
const bodyWidth = 40

// beginning returns the start of a body on one line.
func beginning(body []byte) string {
	text := []rune(strings.NewReplacer("\n", " ", "\t", " ").Replace(printable(body[:min(len(body), 4*bodyWidth)])))
	if len(text) > bodyWidth || len(body) > 4*bodyWidth {
		text = append(text[:min(len(text), bodyWidth-1)], '…')
	}
	return string(text)
}
