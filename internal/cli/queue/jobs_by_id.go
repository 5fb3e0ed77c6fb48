package queue

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

const peekLong = `Show jobs with their bodies, and change nothing: those with the IDs, or of each TUBE the
job that is next to be reserved, the one whose delay ends next, and the one that is next
to be kicked.` + idOrTube

// idOrTube explains arguments that name jobs or tubes.
const idOrTube = `

An argument of digits only is the id of a job; a tube with such a name can be given with
--tube.`

func newPeek() *cobra.Command {
	s := new(session)
	cmd := s.command("peek", "[ID|TUBE...]", "show jobs, or those that are next in a tube", func(ctx context.Context, args []string) error {
		ids, names, err := s.idsOrTubes(args)
		switch {
		case err != nil:
			return err
		case len(ids) > 0:
			return s.eachID(ctx, ids, "", func(id uint64) error {
				j, err := s.Conn.Peek(ctx, id)
				if err != nil {
					return err
				}
				return s.printPeeked(ctx, j)
			})
		case len(names) == 0:
			names = []string{defaultTube}
		}
		if names, err = s.connectTubes(ctx, names); err != nil {
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
	s.defineTubes(cmd, "look into these")
	return cmd
}

// peekNext shows the first job of each state of a tube.
func (s *session) peekNext(ctx context.Context, tube string) error {
	if _, err := s.Conn.StatsTube(ctx, tube); err != nil { // use would make it
		return err
	}
	found := false
	for _, state := range idleStates {
		j, err := s.Conn.PeekTube(ctx, tube, state)
		if errors.Is(err, client.ErrNotFound) {
			continue
		}
		if err == nil {
			err = s.printPeeked(ctx, j)
		}
		if err != nil {
			return err
		}
		found = true
	}
	if !found {
		return cliutil.NotFoundError("tube %s has no job that is ready, delayed or buried", tube)
	}
	return nil
}

// printPeeked prints a job with what the server knows of it.
func (s *session) printPeeked(ctx context.Context, j client.PeekedJob) error {
	job, err := known(ctx, s.Conn, j)
	if err != nil {
		return err
	}
	return s.printJob(job)
}

func newDelete() *cobra.Command {
	s := new(session)
	cmd := s.command("delete", "ID...", "delete jobs that no worker holds", func(ctx context.Context, args []string) error {
		return s.eachID(ctx, args, "deleted", func(id uint64) error { return whyNot(ctx, s.Conn, id, s.Conn.Delete(ctx, id)) })
	})
	cmd.Example = "  beanpole delete 17 23"
	return cmd
}

// whyNot explains that a job was not found, if it is there after all.
func whyNot(ctx context.Context, c *client.Conn, id uint64, err error) error {
	if !errors.Is(err, client.ErrNotFound) {
		return err
	}
	st, statsErr := c.StatsJob(ctx, id)
	switch {
	case statsErr != nil:
		return err
	case st.State == client.StateReserved:
		return cliutil.NotFoundError("job %d is reserved: its worker holds it, for %s more at the most; of a beanpole, 'release --force' and 'bury --force' take it from the worker", id, st.TimeLeft)
	}
	return cliutil.NotFoundError("job %d is %s", id, st.State)
}

const forceLong = `With --force it also takes the jobs from workers that hold them. To those it is as if the
time to run were over: they are not told, and their delete or release is answered
NOT_FOUND.

` + cliutil.AdminNeeds

// newTake returns a command that takes jobs that nobody holds, and does something with them, which
// done says. With --force it is for the jobs that workers hold, through the admin pages. A
// priority of nil is that of the job.
func newTake(name, done, short string, do func(c *client.Conn, ctx context.Context, id uint64, pri uint32) error,
	byForce func(ctx context.Context, a *admin.Client, job admin.OfJob, pri *uint32) error) *cobra.Command {
	var force bool
	var pri uint32
	var given *uint32 // the priority
	var cmd *cobra.Command
	s := new(session)
	cmd = s.command(name, "ID...", short, func(ctx context.Context, args []string) error {
		if cmd.Flags().Changed("pri") {
			given = &pri
		}
		if force {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			a, err := s.AdminClient()
			if err != nil {
				return err
			}
			return s.eachOf(ctx, ids, done, func(id uint64) error { return byForce(ctx, a, admin.OfJob{Job: id}, given) })
		}
		return s.eachID(ctx, args, done, func(id uint64) error {
			j, err := s.Conn.ReserveJob(ctx, id)
			if err != nil {
				return whyNot(ctx, s.Conn, id, err)
			}
			if given == nil {
				st, err := j.Stats(ctx)
				if err != nil {
					return err
				}
				return do(s.Conn, ctx, id, st.Priority)
			}
			return do(s.Conn, ctx, id, pri)
		})
	})
	cmd.Flags().Uint32VarP(&pri, "pri", "p", 0, "with this new priority `N` (that of the job)")
	cmd.Flags().BoolVar(&force, "force", false, "take the jobs from workers that hold them")
	s.NeedAdmin(cmd, "with --force: ")
	return cmd
}

func newBury() *cobra.Command {
	cmd := newTake("bury", "buried", "bury jobs", (*client.Conn).Bury, func(ctx context.Context, a *admin.Client, job admin.OfJob, pri *uint32) error {
		return a.BuryJob(ctx, &admin.BuryJob{OfJob: job, Priority: pri})
	})
	cmd.Long = "Bury jobs that no worker holds.\n\n" + forceLong
	cmd.Example = "  beanpole bury 17\n  beanpole bury 17 --force"
	return cmd
}

func newRelease() *cobra.Command {
	var delay time.Duration
	cmd := newTake("release", "released", "make jobs ready, or delay them", func(c *client.Conn, ctx context.Context, id uint64, pri uint32) error {
		return c.Release(ctx, id, pri, delay)
	}, func(ctx context.Context, a *admin.Client, job admin.OfJob, pri *uint32) error {
		return a.ReleaseJob(ctx, &admin.ReleaseJob{OfJob: job, Priority: pri, Delay: wholeSeconds(delay)})
	})
	cmd.Long = "Make jobs ready that no worker holds, or delay them.\n\n" + forceLong
	cmd.Example = "  beanpole release 17 --delay 10m\n  beanpole release 17 --force"
	cliutil.DurationVar(cmd.Flags(), &delay, "delay", "d", 0, 0, "ready after this `TIME`, such as 10m")
	return cmd
}

const kickLong = `Make jobs ready: those with the IDs, or of each TUBE up to --count, buried ones if there
are any, else delayed ones. With --state it is the jobs in that state, up to --count of
each; the delayed ones are looked at and kicked one by one.

In a dead tube, jobs become ready where they have no workers: 'beanpole redrive TUBE' returns
them to their tubes instead.` + idOrTube

func newKick() *cobra.Command {
	var states stateOption
	count := 1
	s := new(session)
	cmd := s.command("kick", "[ID|TUBE...]", "make buried or delayed jobs ready", func(ctx context.Context, args []string) error {
		ids, names, err := s.idsOrTubes(args)
		switch {
		case err != nil:
			return err
		case len(ids) > 0 && states.given != nil:
			return cliutil.UsageError("--state is for tubes: a job with an id is in the state that it is in")
		case len(ids) > 0:
			return s.eachID(ctx, ids, "kicked", func(id uint64) error { return whyNot(ctx, s.Conn, id, s.Conn.KickJob(ctx, id)) })
		case len(names) == 0:
			return cliutil.UsageError("kick what? Give IDs of jobs, or a tube")
		}
		if names, err = s.connectTubes(ctx, names); err != nil {
			return err
		}
		return s.sweep(names, 0, "kicked", func(tube string, report func(int)) error {
			return s.kickTube(ctx, tube, states.given, count, report)
		})
	})
	cmd.Long = kickLong
	cmd.Example = "  beanpole kick 17 18\n  beanpole kick mail --count 1000\n  beanpole kick 'mail.*' --state delayed"
	s.defineTubes(cmd, "kick jobs of these")
	states.define(cmd, []client.State{client.StateBuried, client.StateDelayed}, "kick the jobs in these")
	cmd.Flags().FuncP("count", "n", "at most `N` jobs of a tube (1)", cliutil.IntoCount(&count, "how many"))
	return cmd
}

// kickTube kicks so many jobs of a tube, of each of the states if there are any.
func (s *session) kickTube(ctx context.Context, tube string, states []client.State, count int, report func(int)) error {
	st, err := s.Conn.StatsTube(ctx, tube) // use would make it
	if err != nil {
		return err
	}
	n := 0
	switch {
	case states == nil:
		n, err = s.Conn.Kick(ctx, tube, count)
	case slices.Contains(states, client.StateBuried) && st.JobsBuried > 0:
		n, err = s.Conn.Kick(ctx, tube, int(min(uint64(count), st.JobsBuried))) // no delayed ones are kicked while there are buried ones
	}
	report(n)
	if st.Watching == 0 && strings.HasSuffix(tube, ".dead") { // the default name of a dead tube
		s.Note("%s has no workers; if it is a dead tube, 'beanpole redrive %s' returns jobs to their tubes", tube, tube)
	}
	if !slices.Contains(states, client.StateDelayed) {
		return err
	}
	for n := 0; n < count && err == nil; {
		var j client.PeekedJob
		if j, err = s.Conn.PeekTube(ctx, tube, client.StateDelayed); err != nil {
			return ignoreNotFound(err)
		}
		if err = s.Conn.KickJob(ctx, j.ID); err == nil {
			report(1)
			n++
		}
		err = ignoreNotFound(err) // it is ready by now
	}
	return err
}
