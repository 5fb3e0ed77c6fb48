package queue

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

const failuresLong = `Group failed jobs by tube, class and reason, the largest group first. Failed jobs are buried,
or wait for another attempt after a failure, in state delayed or ready. A buried job that is
kicked or redriven has all its attempts again, and is no longer listed. In a REASON, * stands
for numbers and ids. For a job without a reason, REASON is the end of the last attempt:
timeout, closed, released or buried.

The server groups a sample of its jobs, and the command prints the size of the sample. With
--do, change all jobs of the listed groups, including jobs outside the sample. The command asks
for confirmation, unless --yes is given. In JSON, 'q' of a group is its query for 'beanpole
jobs --find'.`

// failuresDo maps the values of --do to their results, and to the states of the jobs that
// they change.
var failuresDo = map[string]struct{ done, states string }{
	"kick": {"kicked", "buried delayed"}, "redrive": {"redriven", "buried"}, "delete": {"deleted", "buried delayed ready"},
}

func newFailures() *cobra.Command {
	var reason, do string
	var limit int
	s := new(session)
	cmd := s.adminCommand("failures", "[TUBE...]", "group failed jobs by reason, or retry them", failuresLong, func(ctx context.Context, a *admin.Client, args []string) error {
		if _, ok := failuresDo[do]; do != "" && !ok {
			return exit.UsageError("--do is one of: delete, kick, redrive")
		}
		all, err := a.ListFailures(ctx, &admin.ListFailures{Tube: strings.Join(s.tubeNames(args), ","), Limit: limit})
		if err != nil {
			return err
		}
		var groups []admin.FailureGroup
		for _, g := range all.Groups {
			if strings.Contains(g.Reason, reason) && (do == "" || strings.Contains(failuresDo[do].states, g.State)) {
				groups = append(groups, g)
			}
		}
		if all.Total != nil && all.Looked < *all.Total {
			s.Note("a sample of %d of %d jobs", all.Looked, *all.Total)
		}
		if do != "" {
			return s.changeFailures(ctx, a, groups, do)
		}
		return cliutil.PrintList(&s.Session, groups, "JOBS TUBE:8 STATE CLASS:8 FIRST LAST REASON:10", func(g *admin.FailureGroup) []any {
			return []any{g.Jobs, g.Tube, g.State, g.Class, moment(g.First), moment(g.Last), g.Reason}
		})
	})
	cmd.Example = "  beanpole failures\n  beanpole failures mail --reason SMTPError --do kick\n  beanpole failures mail.dead --do redrive --yes"
	s.defineTube(cmd, "list the failures in `TUBES`, in addition to the arguments")
	cmd.Flags().StringVar(&reason, "reason", "", "list groups whose reason contains this `TEXT`")
	cmd.Flags().StringVar(&do, "do", "", "apply `ACTION` to the jobs of the listed groups: kick, redrive or delete")
	cmd.Flags().IntVarP(&limit, "limit", "n", 100, "list at most `N` groups, up to 1000")
	cmd.RegisterFlagCompletionFunc("do", cobra.FixedCompletions([]string{"delete", "kick", "redrive"}, cobra.ShellCompDirectiveNoFileComp))
	s.DefineYes(cmd)
	return cmd
}

// changeFailures runs a task for the jobs of each group.
func (s *session) changeFailures(ctx context.Context, a *admin.Client, groups []admin.FailureGroup, do string) (err error) {
	if len(groups) > 0 {
		if err := s.Confirm(fmt.Sprintf("%s the jobs of %s?", do, cliutil.Count(len(groups), "group"))); err != nil {
			return err
		}
	}
	changed := uint64(0)
	for i := 0; i < len(groups) && err == nil; i++ {
		g := &groups[i]
		var n uint64
		n, err = s.runTask(ctx, a, &admin.StartTask{OfTube: admin.OfTube{Tube: g.Tube}, Do: do, State: &g.State, Q: &g.Q})
		changed += n
	}
	return s.printChanged(failuresDo[do].done, changed, err)
}
