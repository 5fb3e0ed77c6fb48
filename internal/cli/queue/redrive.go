package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

const redriveLong = `Make the dead jobs of TUBE ready again in the tubes where they were tried. A policy with
exhausted = "move" brings them here, and the server keeps where from: their origin. As a
kick does, it allows each job as many tries again. Jobs that were moved here by hand, or
put here, have no origin: they stay, and the command says how many, unless --to names a
tube for all.

An origin is in the journal and in all members of a cluster, but not in an export or a
mirror.`

func newRedrive() *cobra.Command {
	var to string
	var count uint32
	s := new(session)
	cmd := s.adminCommand("redrive", "TUBE", "bring dead jobs back to where they were tried", redriveLong, func(ctx context.Context, a *admin.Client, args []string) error {
		in := &admin.StartTask{OfTube: admin.OfTube{Tube: args[0]}, Wait: 1, Do: "redrive", State: new("buried")}
		if to != "" {
			if err := client.CheckTube(to); err != nil {
				return err
			}
			in.To = &to
		}
		if count > 0 {
			in.Count = &count
		}
		return s.redrive(ctx, a, in)
	})
	cmd.Example = "  beanpole redrive mail.dead\n  beanpole redrive failed --to mail --count 10"
	fs := cmd.Flags()
	fs.StringVar(&to, "to", "", "bring them to this `TUBE`, wherever they come from")
	fs.Uint32VarP(&count, "count", "n", 0, "bring back `N` jobs and no more; 0: all that are there")
	cmd.ValidArgsFunction = s.completeTubes
	cmd.RegisterFlagCompletionFunc("to", s.completeTubes) // fails for a flag that is not there
	return cmd
}

// redrive starts the task, and waits for its end.
func (s *session) redrive(ctx context.Context, a *admin.Client, in *admin.StartTask) error {
	task, err := a.StartTask(ctx, in)
	b := cliutil.NewBar(s.Err, "jobs")
	defer b.End()
	for err == nil && task.Ended == "" {
		b.Show(task.Done, task.Found, int(task.Done))
		task, err = a.GetTask(ctx, &admin.GetTask{OfTask: admin.OfTask{Task: task.ID}, Wait: 1})
	}
	if b.End(); err != nil {
		return err
	}
	for _, why := range slices.Sorted(maps.Keys(task.Skipped)) {
		s.Note("%s left: %s", cliutil.Count(task.Skipped[why], "job"), why)
	}
	if task.Problem != "" {
		return fmt.Errorf("after %s: %s", cliutil.Count(task.Done, "job"), task.Problem)
	}
	return s.printCount("redriven", int(task.Done))
}
