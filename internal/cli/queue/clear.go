package queue

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/op"
)

const clearLong = `Delete the jobs in the given states from tubes. Jobs that workers hold are not deleted, and
neither are jobs that are put later. The command asks for confirmation, unless --yes is given.
A tube name can be a pattern: * stands for any characters, ? for one.`

func newClear() *cobra.Command {
	s := new(session)
	cmd := s.adminCommand("clear", "[TUBE...]", "delete the jobs of tubes", clearLong, func(ctx context.Context, a *admin.Client, args []string) error {
		names := s.tubeNames(args)
		switch {
		case s.states == nil:
			return errNoState
		case len(names) == 0:
			return errNoTube
		}
		tubes, err := findTubes(ctx, a, names)
		if err != nil {
			return err
		}
		total := uint64(0)
		for i := range tubes {
			n := &tubes[i].Jobs
			for _, state := range s.states {
				total += map[string]uint64{"ready": n.Ready, "delayed": n.Delayed, "buried": n.Buried}[state]
			}
		}
		if total > 0 {
			if err := s.Confirm(fmt.Sprintf("Delete %s of %s?", cliutil.Count(total, strings.Join(s.states, " or ")+" job"), cliutil.Count(len(tubes), "tube"))); err != nil {
				return err
			}
		}
		deleted := uint64(0)
		for i := range tubes {
			n, err := s.changeJobs(ctx, a, admin.StartTask{OfTube: admin.OfTube{Tube: tubes[i].Name}, Do: "delete"}, s.states, 0)
			if deleted += n; err != nil {
				return s.printChanged("deleted", deleted, err)
			}
		}
		return s.printChanged("deleted", deleted, nil)
	})
	cmd.Example = "  beanpole clear mail --state buried\n  beanpole clear 'test.*' --state ready,delayed,buried --yes"
	s.defineTube(cmd, "delete jobs of `TUBES`, in addition to the arguments")
	s.defineStates(cmd, op.IdleStates, "delete the jobs in these")
	s.DefineYes(cmd)
	return cmd
}

const moveLong = `Move jobs from one tube to another. Jobs keep their ids, ages and counters, and each job is in
exactly one of the two tubes at any time. Jobs that workers hold are not moved, and neither are
jobs that are put later.`

func newMove() *cobra.Command {
	var count uint32
	s := new(session)
	cmd := s.adminCommand("move", "FROM TO", "move jobs to another tube", moveLong, func(ctx context.Context, a *admin.Client, args []string) error {
		switch {
		case s.states == nil:
			return errNoState
		case args[0] == args[1]:
			return exit.UsageError("FROM and TO are the same tube")
		}
		of := admin.OfTube{Tube: args[0]}
		if _, err := a.GetTube(ctx, &of); err != nil { // a task on a missing tube succeeds
			return err
		}
		moved, err := s.changeJobs(ctx, a, admin.StartTask{OfTube: of, Do: "move", To: &args[1]}, s.states, count)
		return s.printChanged("moved", moved, err)
	})
	cmd.Example = "  beanpole move mail mail.later --state delayed\n  beanpole move failed mail --state buried --count 100"
	s.defineStates(cmd, op.IdleStates, "move the jobs in these")
	cmd.Flags().Uint32VarP(&count, "count", "n", 0, "move at most `N` jobs; 0 is unlimited")
	cmd.ValidArgsFunction = s.completeTubes
	return cmd
}
