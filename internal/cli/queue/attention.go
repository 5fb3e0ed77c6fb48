package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/health"
)

const attentionLong = `Report whether clients can use the queue, and list the findings about the server, its cluster
and its tubes, the worst first. The console, "top --admin" and the alerts for Prometheus
have the same findings.

The exit code is 1 if clients cannot use the queue, or if a finding is bad.`

// A report is the answer of the command as JSON.
type report struct {
	Ready  bool   `json:"ready"`
	Reason string `json:"readyz"` // first line of the response
	admin.Attention
}

func newAttention() *cobra.Command {
	s := new(session)
	cmd := s.adminCommand("attention", "", "list problems that need attention", attentionLong, func(ctx context.Context, a *admin.Client, _ []string) (err error) {
		var r report
		if r.Ready, r.Reason, err = s.Probe(ctx, "/readyz"); err != nil {
			return err
		}
		if r.Attention, err = a.GetAttention(ctx, &admin.GetAttention{Limit: 1000}); err != nil {
			return err
		}
		if s.JSON {
			err = s.PrintJSON(&r)
		} else {
			err = s.printReport(&r)
		}
		return cmp.Or(err, exit.WithCode(exit.Failure, r.verdict()))
	})
	cmd.Example = "  beanpole attention\n  beanpole attention --json | jq -r '.findings[] | .tube + \": \" + .text'"
	return cmd
}

// verdict returns an error if there is a problem.
func (r *report) verdict() error {
	switch {
	case !r.Ready:
		return fmt.Errorf("clients cannot use the queue: %s", r.Reason)
	case slices.ContainsFunc(r.Findings, func(f admin.Finding) bool { return f.Severity == health.Bad }):
		return fmt.Errorf("the server needs attention: %s", cliutil.Count(r.Total, "finding"))
	}
	return nil
}

func (s *session) printReport(r *report) error {
	fmt.Fprintln(s.Out, "readyz:", cliutil.Line(r.Reason))
	if r.Total == 0 {
		_, err := fmt.Fprintln(s.Out, "no findings")
		return err
	}
	fmt.Fprintln(s.Out)
	return cliutil.PrintRows(s.Out, "SEVERITY KIND TUBE:12 FINDING", r.Findings, func(f *admin.Finding) []any {
		return []any{f.Severity, f.Kind, cmp.Or(f.Tube, f.Like, "-"), f.Text}
	})
}
