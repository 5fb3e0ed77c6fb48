package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// sweepBatch is how many jobs one command deletes or moves at most: so that the
// progress is seen, and no answer takes long.
const sweepBatch = 100_000

// clearState deletes the jobs of a state of a tube, and reports how many; slow is called where the
// server cannot do it by itself.
func clearState(ctx context.Context, c *client.Conn, tube string, state client.State, report func(int), slow func()) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		// Not interrupted, so that it is known how many there were.
		n, err := c.FlushTube(context.WithoutCancel(ctx), client.Selection{Tube: tube, State: state, Limit: sweepBatch})
		if errors.Is(err, client.ErrUnknownCommand) {
			slow()
			return deleteState(ctx, c, tube, state, report)
		}
		report(n)
		if err != nil || n < sweepBatch {
			return ignoreNotFound(err)
		}
	}
}

// ignoreNotFound returns an error, but for that of a job or tube which has gone: a tube
// goes with its last job.
func ignoreNotFound(err error) error {
	if errors.Is(err, client.ErrNotFound) {
		return nil
	}
	return err
}

// deleteState is clearState on any server: it deletes one job after the other. A job
// that a worker takes meanwhile is left to it.
func deleteState(ctx context.Context, c *client.Conn, tube string, state client.State, report func(int)) error {
	for {
		j, err := c.PeekTube(ctx, tube, state)
		if err != nil {
			return ignoreNotFound(err)
		}
		switch err := c.Delete(ctx, j.ID); {
		case err == nil:
			report(1)
		case !errors.Is(err, client.ErrNotFound):
			return err
		}
	}
}

const clearLong = `Delete the jobs of tubes that are in the given states. Jobs that a worker holds are
never touched. It asks before, unless --yes is given.

Jobs that come meanwhile are deleted too, so a tube that is being filled may take
long to be empty: pause what puts into it, or drain the server.

beanpole deletes them by itself (flush-tube), a million in a second or a few. On other
servers each job is looked at and deleted, in two round trips, and the counters of both
go up.`

func newClear() *cobra.Command {
	var states stateOption
	var yes bool
	s := new(session)
	cmd := s.command("clear", "[TUBE...]", "delete the jobs of tubes", func(ctx context.Context, args []string) error {
		if err := states.check(); err != nil {
			return err
		}
		names, err := s.connectTubes(ctx, s.allTubes(args))
		if err != nil {
			return err
		}
		return s.clear(ctx, names, states.given, yes)
	})
	cmd.Long = clearLong
	cmd.Example = "  beanpole clear mail --state buried\n  beanpole clear 'test.*' --state ready,delayed,buried --yes"
	s.defineTubes(cmd, "delete jobs of these")
	states.define(cmd, idleStates, "delete the jobs in these")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// clear deletes the jobs of tubes that are in some states.
func (s *session) clear(ctx context.Context, tubes []string, states []client.State, yes bool) error {
	counts := make([]uint64, len(states))
	there := uint64(0)
	for _, tube := range tubes {
		st, err := s.Conn.StatsTube(ctx, tube)
		if err != nil {
			return err
		}
		for i, state := range states {
			counts[i] += jobsIn(st, state)
			there += jobsIn(st, state)
		}
	}
	if !yes && there > 0 {
		if err := cliutil.Confirm(s.In, s.Err, fmt.Sprintf("delete %s of %s?", countStates(counts, states), tubesInWords(tubes))); err != nil {
			return err
		}
	}
	slow := sync.OnceFunc(func() { s.Note("the server has no flush-tube: each job is looked at and deleted by itself") })
	return s.sweep(tubes, there, "deleted", func(tube string, report func(int)) error {
		for _, state := range states {
			if err := clearState(ctx, s.Conn, tube, state, report, slow); err != nil {
				return err
			}
		}
		return nil
	})
}

// tubesInWords names the first of some tubes.
func tubesInWords(tubes []string) string {
	const named = 5
	switch len(tubes) {
	case 0:
		return "no tube"
	case 1:
		return "tube " + tubes[0]
	}
	text := fmt.Sprintf("%d tubes: %s", len(tubes), strings.Join(tubes[:min(len(tubes), named)], ", "))
	if len(tubes) > named {
		text += ", ..."
	}
	return text
}
