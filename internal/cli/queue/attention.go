package queue

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/health"
)

const attentionLong = `List what an operator should look at: whether clients can use the queue, the state of the
cluster, and the findings about the server and its tubes, the worst first. The console,
"top --admin" and the alerts for Prometheus have the same findings.

The exit code is 1 if clients cannot use the queue, or if a finding is bad.`

// A report is the answer of the command as JSON.
type report struct {
	Ready   bool           `json:"ready"`
	Reason  string         `json:"readyz"` // first line
	Cluster *admin.Cluster `json:"cluster,omitempty"`
	admin.Attention
}

func newAttention() *cobra.Command {
	s := new(session)
	cmd := s.adminCommand("attention", "", "list what needs attention", attentionLong, func(ctx context.Context, a *admin.Client, _ []string) error {
		one, err := s.report(ctx, a)
		if err == nil && s.JSON {
			err = s.PrintJSON(one)
		} else if err == nil {
			err = s.printReport(one)
		}
		return cmp.Or(err, exit.WithCode(exit.Failure, one.verdict()))
	})
	cmd.Example = "  beanpole attention\n  beanpole attention --json | jq -r '.findings[] | .tube + \": \" + .text'"
	return cmd
}

// report asks the server.
func (s *session) report(ctx context.Context, a *admin.Client) (one *report, err error) {
	one = new(report)
	if one.Ready, one.Reason, err = s.Probe(ctx, "/readyz"); err != nil {
		return one, err
	}
	c, err := a.GetCluster(ctx)
	if err == nil {
		one.Cluster = &c
	} else if admin.StatusOf(err) != http.StatusNotFound { // the server is not a member
		return one, err
	}
	one.Attention, err = a.GetAttention(ctx, &admin.GetAttention{Limit: 1000})
	return one, err
}

// verdict returns an error if something is wrong.
func (r *report) verdict() error {
	bad := slices.ContainsFunc(r.Findings, func(f admin.Finding) bool { return f.Severity == health.Bad })
	switch {
	case !r.Ready:
		return fmt.Errorf("clients cannot use the queue: %s", r.Reason)
	case bad || r.Cluster != nil && slices.ContainsFunc(r.Cluster.Problems(), func(p admin.ClusterProblem) bool { return p.Bad }):
		return fmt.Errorf("the server needs attention: %s", cliutil.Count(r.Total, "finding"))
	}
	return nil
}

func (s *session) printReport(r *report) error {
	fmt.Fprintln(s.Out, "readyz:", cliutil.Line(r.Reason))
	if r.Cluster != nil {
		problems := r.Cluster.Problems()
		if len(problems) == 0 {
			fmt.Fprintln(s.Out, "cluster:", cliutil.Line(r.Cluster.Summary()))
		}
		for _, p := range problems {
			if !slices.ContainsFunc(r.Findings, func(f admin.Finding) bool { return f.Text == p.Text }) { // the leader might have reported others
				fmt.Fprintln(s.Out, "cluster:", cliutil.Line(p.Text))
			}
		}
	}
	if r.Total == 0 {
		_, err := fmt.Fprintln(s.Out, "no findings")
		return err
	}
	fmt.Fprintln(s.Out)
	return cliutil.PrintRows(s.Out, "SEVERITY KIND TUBE:12 FINDING", r.Findings, func(f *admin.Finding) []any {
		return []any{f.Severity, f.Kind, cmp.Or(f.Tube, f.Like, "-"), f.Text}
	})
}
