package queue

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

const moveLong = `Move jobs from one tube to another, with their priorities, times to run and bodies;
delayed jobs with the delay that is left, and buried ones stay buried. Jobs that a
worker holds are not touched.

They keep their ids, ages and counters, and a job is in one of the tubes at any moment.
Other servers than beanpole have no command for that (move-jobs). There jobs are copied,
and then deleted, by which they get new ids:

  beanpole jobs failed --state buried --limit 0 --json > jobs
  beanpole import --tube mail jobs
  jq .id jobs | xargs beanpole delete`

func newMove() *cobra.Command {
	var states stateOption
	var count uint
	s := new(session)
	cmd := s.command("move", "FROM TO", "move jobs to another tube", func(ctx context.Context, args []string) error {
		if err := states.check(); err != nil {
			return err
		}
		if args[0] == args[1] {
			return cliutil.UsageError("FROM and TO are the same tube")
		}
		if err := client.CheckTube(args[1]); err != nil {
			return err
		}
		st, err := s.connectTube(ctx, args[0])
		if err != nil {
			return err
		}
		return s.move(ctx, st, args[1], states.given, int(count))
	})
	cmd.Long = moveLong
	cmd.Example = "  beanpole move mail mail.later --state delayed\n  beanpole move failed mail --state buried --count 100"
	states.define(cmd, idleStates, "move the jobs in these")
	cmd.Flags().UintVarP(&count, "count", "n", 0, "move `N` jobs and no more; 0: all that are there")
	cmd.ValidArgsFunction = s.completeTubes
	return cmd
}

// move moves jobs of a tube: as many of each state as there are now, so that it ends where
// others go on putting, and no more than most; 0: no limit.
func (s *session) move(ctx context.Context, from *client.TubeStats, to string, states []client.State, most int) error {
	there := make([]int, len(states))
	total := 0
	for i, state := range states {
		there[i] = int(jobsIn(from, state))
		total += there[i]
	}
	if most == 0 || most > total {
		most = total
	}
	return s.sweep([]string{from.Name}, uint64(most), "moved", func(tube string, report func(int)) error {
		for i, state := range states {
			for moved := sweepBatch; moved == sweepBatch; {
				if err := ctx.Err(); err != nil {
					return err
				}
				n := min(there[i], most, sweepBatch)
				if n == 0 {
					break
				}
				// Not interrupted, so that it is known how many were moved.
				var err error
				moved, err = s.Conn.MoveJobs(context.WithoutCancel(ctx), client.Selection{Tube: tube, State: state, Limit: n}, to)
				there[i] -= moved
				most -= moved
				if errors.Is(err, client.ErrUnknownCommand) {
					return errors.New("the server has no move-jobs; how jobs are copied and deleted there, beanpole move --help says")
				}
				if report(moved); err != nil {
					return ignoreNotFound(err)
				}
			}
		}
		return nil
	})
}
