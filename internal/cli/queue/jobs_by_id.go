package queue

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/flags"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// idOrTube is the help about arguments that are ids of jobs or names of tubes.
const idOrTube = `

An argument that consists of digits is the id of a job. Use --tube for a tube with such a
name.`

const peekLong = `Show jobs with their bodies: the jobs with the given ids, or the next ready, delayed and
buried job of each tube (default). Workers and counters are not affected.` + idOrTube

func newPeek() *cobra.Command {
	s := new(session)
	cmd := s.command("peek", "[ID|TUBE...]", "show jobs by id, or the next jobs of a tube", func(ctx context.Context, args []string) error {
		ids, names, err := s.idsOrTubes(args)
		switch {
		case err != nil:
			return err
		case len(ids) > 0:
			return s.eachID(ctx, ids, "", func(id uint64) error {
				body, err := s.Conn.Peek(ctx, id)
				if err != nil {
					return err
				}
				return s.printPeeked(ctx, id, body)
			})
		case len(names) == 0:
			names = []string{defaultTube}
		}
		if err := s.Connect(ctx); err != nil {
			return err
		}
		for _, tube := range names {
			if err := s.peekNext(ctx, tube); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Example = "  beanpole peek mail\n  beanpole peek 17 --json"
	cmd.Long = peekLong
	s.defineTube(cmd, "show the next jobs of `TUBES`, in addition to the arguments")
	return cmd
}

// peekNext prints the next job of each state of a tube.
func (s *session) peekNext(ctx context.Context, tube string) error {
	if _, err := s.Conn.StatsTube(ctx, tube); err != nil { // the command use would create it
		return err
	}
	found := false
	for _, state := range op.IdleStates {
		id, body, err := s.Conn.PeekTube(ctx, tube, client.State(state))
		if errors.Is(err, client.ErrNotFound) {
			continue
		}
		if err == nil {
			err = s.printPeeked(ctx, id, body)
		}
		if err != nil {
			return err
		}
		found = true
	}
	if !found {
		return exit.NotFoundError("tube %s has no ready, delayed or buried job", tube)
	}
	return nil
}

// printPeeked prints a job with its statistics.
func (s *session) printPeeked(ctx context.Context, id uint64, body []byte) error {
	a, err := s.FindAdminClient()
	if err != nil {
		return err
	}
	job, err := withStats(ctx, s.Conn, a, id, body)
	if err != nil {
		return err
	}
	return s.printJob(job)
}

func newDelete() *cobra.Command {
	s := new(session)
	cmd := s.command("delete", "ID...", "delete jobs that no worker holds", func(ctx context.Context, args []string) error {
		return s.eachID(ctx, args, "deleted", func(id uint64) error { return explainNotFound(ctx, s.Conn, id, s.Conn.Delete(ctx, id)) })
	})
	cmd.Example = "  beanpole delete 17 23"
	return cmd
}

// explainNotFound replaces a NOT_FOUND error with the job's state if the job exists.
func explainNotFound(ctx context.Context, c *client.Conn, id uint64, err error) error {
	if !errors.Is(err, client.ErrNotFound) {
		return err
	}
	st, statsErr := c.StatsJob(ctx, id)
	switch {
	case statsErr != nil:
		return err
	case st.State == client.StateReserved:
		return exit.NotFoundError("job %d is reserved: its worker holds it for up to %s; 'beanpole release' and 'bury' take it from the worker", id, st.TimeLeft)
	}
	return exit.NotFoundError("job %d is %s", id, st.State)
}

const takeLong = `

A worker that holds the job loses it, as at the end of the TTR: the server answers its next
command for the job with NOT_FOUND.`

func newBury() *cobra.Command {
	return newJobCommand("bury", "buried", "bury jobs, even reserved ones", "Bury jobs that are ready, delayed or reserved."+takeLong,
		func(ctx context.Context, a *admin.Client, job admin.OfJob, pri *uint32) error {
			return a.BuryJob(ctx, &admin.BuryJob{OfJob: job, Priority: pri})
		})
}

func newRelease() *cobra.Command {
	var delay time.Duration
	cmd := newJobCommand("release", "released", "take reserved jobs from their workers", "Make reserved jobs ready, or delay them. Use 'beanpole kick' for buried and delayed jobs."+takeLong,
		func(ctx context.Context, a *admin.Client, job admin.OfJob, pri *uint32) error {
			return a.ReleaseJob(ctx, &admin.ReleaseJob{OfJob: job, Priority: pri, Delay: wholeSeconds(delay)})
		})
	cliutil.DurationVar(cmd.Flags(), &delay, "delay", "d", 0, 0, "delay the jobs by this `TIME`, such as 10m")
	return cmd
}

// newJobCommand returns a command that changes jobs, given by id. done is its result in
// one word. pri is nil if the priority does not change.
func newJobCommand(name, done, short, long string, change func(ctx context.Context, a *admin.Client, job admin.OfJob, pri *uint32) error) *cobra.Command {
	var pri uint32
	var given *uint32
	var cmd *cobra.Command
	s := new(session)
	cmd = s.adminCommand(name, "ID...", short, long, func(ctx context.Context, a *admin.Client, args []string) error {
		ids, err := parseIDs(args, "job")
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("pri") {
			given = &pri
		}
		return s.eachOf(ctx, ids, done, func(id uint64) error { return change(ctx, a, admin.OfJob{Job: id}, given) })
	})
	cmd.Example = "  beanpole " + name + " 17"
	cmd.Flags().Uint32VarP(&pri, "pri", "p", 0, "change the priority to `N`")
	return cmd
}

const kickLong = `Make jobs ready: the jobs with the given ids, or up to --count jobs of each tube. In a tube,
the command kicks buried jobs, or delayed jobs if no job is buried.

The jobs of a dead tube become ready in the dead tube, which often has no workers. To return
them to the tubes that they came from, use 'beanpole redrive TUBE'.` + idOrTube

func newKick() *cobra.Command {
	count := 1
	s := new(session)
	cmd := s.command("kick", "[ID|TUBE...]", "make buried or delayed jobs ready", func(ctx context.Context, args []string) error {
		ids, names, err := s.idsOrTubes(args)
		switch {
		case err != nil:
			return err
		case len(ids) > 0:
			return s.eachID(ctx, ids, "kicked", func(id uint64) error { return explainNotFound(ctx, s.Conn, id, s.Conn.KickJob(ctx, id)) })
		case len(names) == 0:
			return exit.UsageError("no jobs given; name ids or a tube")
		}
		if err := s.Connect(ctx); err != nil {
			return err
		}
		kicked := 0
		for _, tube := range names {
			if _, err := s.Conn.StatsTube(ctx, tube); err != nil { // the command use would create it
				return err
			}
			n, err := s.Conn.Kick(ctx, tube, count)
			if kicked += n; err != nil {
				return err
			}
		}
		return s.printCount("kicked", uint64(kicked))
	})
	cmd.Long = kickLong
	cmd.Example = "  beanpole kick 17 18\n  beanpole kick mail --count 1000"
	s.defineTube(cmd, "kick jobs of `TUBES`, in addition to the arguments")
	cmd.Flags().FuncP("count", "n", "kick at most `N` jobs of a tube (default 1)", flags.IntoCount(&count, "the number of jobs"))
	return cmd
}
