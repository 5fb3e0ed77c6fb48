package queue

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/op"
)

const jobsLong = `List the jobs of a tube, or with --find the matching jobs of all tubes, with the start of each
body. Jobs are sorted by state: ready jobs in
the order of reservation, reserved and delayed jobs by the time left, and buried jobs in the
order of burial. HOLDER is the connection that holds a reserved job; see 'beanpole
connections'. REASON is the error of the last attempt, or how the attempt ended.

With --json, each line is a job with its body. Bodies above 1 MiB are left out; 'beanpole
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
		if query != "" {
			for _, name := range s.tubeNames(args) {
				query += " tube:" + name
			}
			if s.states != nil {
				query += " state:" + strings.Join(s.states, ",")
			}
			return s.find(ctx, a, query, int(limit))
		}
		tube, err := s.oneTube(args)
		if err != nil {
			return err
		}
		if s.states == nil {
			s.states = op.States
		}
		return s.listJobs(ctx, a, tube, int(limit))
	})
	cmd.Example = "  beanpole jobs mail --state buried\n  beanpole jobs mail --limit 0 --json | jq -r .body\n  beanpole jobs --find 'user.id:17 tries>=3' --state buried"
	s.defineTube(cmd, "list the jobs of `TUBE`, instead of the argument")
	s.defineStates(cmd, op.States, "list jobs in these")
	cmd.Flags().StringVarP(&query, "find", "q", "", "list the jobs that match `QUERY`")
	cmd.Flags().UintVarP(&limit, "limit", "n", 100, "list at most `N` jobs; 0 is unlimited")
	return cmd
}

// listJobs prints the jobs of a tube in the given states.
func (s *session) listJobs(ctx context.Context, a *admin.Client, tube string, limit int) error {
	const page = 1000
	list := jobList{session: s, ofOne: true}
	for _, state := range s.states {
		in := admin.ListJobs{OfTube: admin.OfTube{Tube: tube}, State: state, Bodies: true, Limit: page}
		for more := true; more; more = in.Cursor != "" {
			if limit > 0 {
				in.Limit = min(page, limit+1-list.n)
			}
			jobs, err := a.ListJobs(ctx, &in)
			if err != nil {
				return err
			}
			for i := range jobs.Jobs {
				if list.n == limit && limit > 0 {
					s.Note("more jobs exist; --limit 0 lists all")
					return list.print()
				}
				if err := list.add(&jobs.Jobs[i]); err != nil {
					return err
				}
			}
			in.Cursor = jobs.Next
		}
	}
	return list.print()
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

// A jobList prints jobs: as JSON at once, or as a table when print is called.
type jobList struct {
	*session
	ofOne bool // whether all jobs are in one tube
	n     int  // number of jobs
	held  bool // whether a job has a holder
	fails bool // whether a job has a reason
	rows  [][]any
}

func (l *jobList) add(j *admin.Job) error {
	l.n++
	if l.JSON {
		return l.PrintJSON(j)
	}
	var left, holder any
	if j.State == "delayed" || j.State == "reserved" {
		left = cliutil.OfSeconds(j.TimeLeft)
	}
	if j.ReservedBy > 0 {
		holder, l.held = j.ReservedBy, true
	}
	var reason any
	if j.Failure != nil {
		text := beginning([]byte(cmp.Or(j.Failure.Reason, j.Failure.Policy, j.Failure.End)))
		reason, l.fails = text, l.fails || text != ""
	}
	l.rows = append(l.rows, []any{j.ID, j.Tube, j.State, j.Priority, cliutil.OfSeconds(j.Age), left, holder, j.Reserves, reason, j.Size, beginning(j.Bytes())})
	return nil
}

// print prints the table without the columns that would be the same for all jobs.
func (l *jobList) print() error {
	if l.JSON {
		return nil
	}
	titles := strings.Fields("ID TUBE:8 STATE PRI AGE LEFT HOLDER TRIES REASON:10 BYTES BODY:10")
	omit := func(column int) {
		titles = slices.Delete(titles, column, column+1)
		for i := range l.rows {
			l.rows[i] = slices.Delete(l.rows[i], column, column+1)
		}
	}
	if !l.fails {
		omit(8)
	}
	if !l.held {
		omit(6)
	}
	if l.ofOne {
		omit(1)
	}
	return cliutil.PrintTable(l.Out, strings.Join(titles, " "), l.rows)
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
