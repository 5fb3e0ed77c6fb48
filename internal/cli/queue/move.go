package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
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
	var count int
	cmd := newCommand("move", "FROM TO", "move jobs to another tube", func(ctx context.Context, s *session, args []string) error {
		wanted, err := states.needed()
		if err != nil {
			return err
		}
		switch {
		case args[0] == args[1]:
			return kit.UsageError("FROM and TO are the same tube")
		case count < 0:
			return kit.UsageError("--count is not negative; 0 is all")
		}
		if err := client.CheckTube(args[1]); err != nil {
			return err
		}
		c, err := s.dialTube(ctx, args[0])
		if err != nil {
			return err
		}
		defer c.Close()
		m := &mover{session: s, conn: c, from: args[0], to: args[1], left: count}
		b := kit.NewBar(s.Err, "jobs")
		defer b.End()
		m.progress = func() { b.Show(uint64(m.moved), uint64(m.there), m.moved) }
		for _, state := range wanted {
			if err := m.move(ctx, state); err != nil {
				return fmt.Errorf("after %s: %w", countJobs(uint64(m.moved), ""), err)
			}
		}
		b.End()
		return s.did("moved", m.moved)
	})
	cmd.Long = moveLong
	cmd.Example = "  beanpole move mail mail.later --state delayed\n  beanpole move failed mail --state buried --count 100"
	states.define(cmd, idleStates, "move the jobs in these")
	cmd.Flags().IntVarP(&count, "count", "n", 0, "move `N` jobs and no more; 0: all that are there")
	cmd.ValidArgsFunction = completeTubes
	return cmd
}

// A mover moves jobs from one tube to another.
type mover struct {
	*session
	conn     *client.Conn
	from, to string
	left     int // that may be moved; 0: no limit
	moved    int
	there    int // jobs that were to be moved, of this state and those before
	progress func()
}

// move moves the jobs of a state: as many as there are now, so that it ends where
// others go on putting.
func (m *mover) move(ctx context.Context, state client.State) error {
	st, err := m.conn.StatsTube(ctx, m.from)
	if err != nil {
		return ignoreNotFound(err)
	}
	there := int(jobsIn(st, state))
	if m.left > 0 {
		there = min(there, m.left-m.moved)
	}
	m.there += there
	for n := sweepBatch; n == sweepBatch && there > 0; there -= n {
		if err := ctx.Err(); err != nil {
			return err
		}
		// Not interrupted, so that it is known how many were moved.
		n, err = m.conn.MoveJobs(context.WithoutCancel(ctx), client.Selection{Tube: m.from, State: state, Limit: min(there, sweepBatch)}, m.to)
		if errors.Is(err, client.ErrUnknownCommand) {
			return errors.New("the server has no move-jobs; how jobs are copied and deleted there, beanpole move --help says")
		}
		m.moved += n
		if err != nil {
			return ignoreNotFound(err)
		}
		m.progress()
	}
	return nil
}
