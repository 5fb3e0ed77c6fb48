package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
)

const peekLong = `Show jobs with their bodies, and change nothing: those with the IDs, or of each TUBE the
job that is next to be reserved, the one whose delay ends next, and the one that is next
to be kicked.` + idOrTube

// idOrTube explains arguments that name jobs or tubes.
const idOrTube = `

An argument of digits only is the id of a job; a tube with such a name can be given with
--tube.`

func newPeek() *cobra.Command {
	var tubes tubeOption
	cmd := newCommand("peek", "[ID|TUBE...]", "show jobs, or those that are next in a tube", func(ctx context.Context, s *session, args []string) error {
		ids, names, err := tubes.orIDs(args)
		switch {
		case err != nil:
			return err
		case len(ids) > 0:
			return s.eachID(ctx, ids, "", func(c *client.Conn, id uint64) error {
				j, err := c.Peek(ctx, id)
				if err != nil {
					return err
				}
				return s.printPeeked(ctx, c, j)
			})
		case len(names) == 0:
			names = []string{defaultTube}
		}
		return s.peekTubes(ctx, names)
	})
	cmd.Example = "  beanpole peek mail\n  beanpole peek 17 --json"
	cmd.Long = peekLong
	tubes.define(cmd, "look into these")
	return cmd
}

// peekTubes shows the first jobs of tubes.
func (s *session) peekTubes(ctx context.Context, names []string) error {
	c, names, err := s.dialTubes(ctx, names)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, tube := range names {
		if err := s.peekNext(ctx, c, tube); err != nil {
			return err
		}
	}
	return nil
}

// peekNext shows the first job of each state of a tube.
func (s *session) peekNext(ctx context.Context, c *client.Conn, tube string) error {
	if _, err := c.StatsTube(ctx, tube); err != nil { // use would make it
		return err
	}
	found := false
	for _, state := range idleStates {
		j, err := peekState(ctx, c, tube, state)
		if errors.Is(err, client.ErrNotFound) {
			continue
		}
		if err == nil {
			err = s.printPeeked(ctx, c, j)
		}
		if err != nil {
			return err
		}
		found = true
	}
	if !found {
		return kit.Nothing("tube %s has no job that is ready, delayed or buried", tube)
	}
	return nil
}

// printPeeked prints a job with what the server knows of it.
func (s *session) printPeeked(ctx context.Context, c *client.Conn, j client.PeekedJob) error {
	job, err := known(ctx, c, j)
	if err != nil {
		return err
	}
	return s.printJob(job)
}

func newDelete() *cobra.Command {
	cmd := newCommand("delete", "ID...", "delete jobs that no worker holds", func(ctx context.Context, s *session, args []string) error {
		return s.eachID(ctx, args, "deleted", func(c *client.Conn, id uint64) error {
			return whyNot(ctx, c, id, c.Delete(ctx, id))
		})
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
		return kit.Nothing("job %d is reserved: its worker holds it, for %s more at the most; of a beanpole, 'release --force' and 'bury --force' take it from the worker", id, st.TimeLeft)
	}
	return kit.Nothing("job %d is %s", id, st.State)
}

// hold takes a job that nobody holds, and does something with it.
func hold(ctx context.Context, c *client.Conn, id uint64, do func(context.Context, *client.Job, *client.JobStats) error) error {
	j, err := c.ReserveJob(ctx, id)
	if err != nil {
		return whyNot(ctx, c, id, err)
	}
	st, err := j.Stats(ctx)
	if err != nil {
		return err
	}
	return do(ctx, j, st)
}

// forceOptions are what a command does with jobs that a worker holds, if it is told to.
type forceOptions struct {
	yes   bool
	admin kit.AdminPages
}

const forceLong = `With --force it also takes the jobs from workers that hold them. To those it is as if the
time to run were over: they are not told, and their delete or release is answered
NOT_FOUND.

` + kit.AdminNeeds

func (f *forceOptions) define(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.yes, "force", false, "take the jobs from workers that hold them")
	f.admin.Need(cmd.Flags(), "with --force: ")
}

// apply does something with jobs, whoever holds them.
func (f *forceOptions) apply(ctx context.Context, s *session, args []string, done string, do func(a *admin.Client, job admin.OfJob) error) error {
	ids, err := parseIDs(args)
	if err != nil {
		return err
	}
	a, err := f.admin.Client(&s.Server)
	if err != nil {
		return err
	}
	return s.eachOf(ctx, ids, done, func(id uint64) error { return do(a, admin.OfJob{Job: id}) })
}

func newBury() *cobra.Command {
	var pri priority
	var force forceOptions
	cmd := newCommand("bury", "ID...", "bury jobs", func(ctx context.Context, s *session, args []string) error {
		if force.yes {
			return force.apply(ctx, s, args, "buried", func(a *admin.Client, job admin.OfJob) error {
				return a.BuryJob(ctx, &admin.BuryJob{OfJob: job, Priority: pri.given()})
			})
		}
		return s.eachID(ctx, args, "buried", func(c *client.Conn, id uint64) error {
			return hold(ctx, c, id, func(ctx context.Context, j *client.Job, st *client.JobStats) error { return j.Bury(ctx, pri.or(st)) })
		})
	})
	cmd.Long = "Bury jobs that no worker holds.\n\n" + forceLong
	cmd.Example = "  beanpole bury 17\n  beanpole bury 17 --force"
	pri.define(cmd)
	force.define(cmd)
	return cmd
}

func newRelease() *cobra.Command {
	var pri priority
	var delay time.Duration
	var force forceOptions
	cmd := newCommand("release", "ID...", "make jobs ready, or delay them", func(ctx context.Context, s *session, args []string) error {
		if force.yes {
			return force.apply(ctx, s, args, "released", func(a *admin.Client, job admin.OfJob) error {
				return a.ReleaseJob(ctx, &admin.ReleaseJob{OfJob: job, Priority: pri.given(), Delay: wholeSeconds(delay)})
			})
		}
		return s.eachID(ctx, args, "released", func(c *client.Conn, id uint64) error {
			return hold(ctx, c, id, func(ctx context.Context, j *client.Job, st *client.JobStats) error {
				return j.Release(ctx, pri.or(st), delay)
			})
		})
	})
	cmd.Long = "Make jobs ready that no worker holds, or delay them.\n\n" + forceLong
	cmd.Example = "  beanpole release 17 --delay 10m\n  beanpole release 17 --force"
	pri.define(cmd)
	kit.DurationVar(cmd.Flags(), &delay, "delay", "d", 0, 0, "ready after this `TIME`, such as 10m")
	force.define(cmd)
	return cmd
}

// A priority is one that may be given; else the job keeps its own.
type priority struct {
	cmd *cobra.Command
	pri uint32
}

func (p *priority) define(cmd *cobra.Command) {
	p.cmd = cmd
	cmd.Flags().Uint32VarP(&p.pri, "pri", "p", 0, "with this new priority `N` (that of the job)")
}

func (p *priority) or(st *client.JobStats) client.Priority {
	if p.cmd.Flags().Changed("pri") {
		return client.PriorityOf(p.pri)
	}
	return client.PriorityOf(st.Priority)
}

// given returns the priority, or nil if none was given.
func (p *priority) given() *uint32 {
	if p.cmd.Flags().Changed("pri") {
		return &p.pri
	}
	return nil
}

const kickLong = `Make jobs ready: those with the IDs, or of each TUBE up to --count, buried ones if there
are any, else delayed ones. With --state it is the jobs in that state, up to --count of
each; the delayed ones are looked at and kicked one by one.` + idOrTube

func newKick() *cobra.Command {
	var tubes tubeOption
	var states stateOption
	var count int
	cmd := newCommand("kick", "[ID|TUBE...]", "make buried or delayed jobs ready", func(ctx context.Context, s *session, args []string) error {
		ids, names, err := tubes.orIDs(args)
		switch {
		case err != nil:
			return err
		case count < 1:
			return kit.UsageError("--count must be 1 or more")
		case len(ids) > 0 && len(states.names) > 0:
			return kit.UsageError("--state is for tubes: a job with an id is in the state that it is in")
		case len(ids) > 0:
			return s.eachID(ctx, ids, "kicked", func(c *client.Conn, id uint64) error {
				return whyNot(ctx, c, id, c.KickJob(ctx, id))
			})
		case len(names) == 0:
			return kit.UsageError("kick what? Give IDs of jobs, or a tube")
		}
		wanted, err := states.states()
		if err != nil {
			return err
		}
		return s.kickTubes(ctx, names, wanted, count)
	})
	cmd.Long = kickLong
	cmd.Example = "  beanpole kick 17 18\n  beanpole kick mail --count 1000\n  beanpole kick 'mail.*' --state delayed"
	tubes.define(cmd, "kick jobs of these")
	states.define(cmd, []client.State{client.StateBuried, client.StateDelayed}, "kick the jobs in these")
	cmd.Flags().IntVarP(&count, "count", "n", 1, "at most `N` jobs of a tube")
	return cmd
}

// kickTubes kicks so many jobs of each tube, and of each of the states if there are any.
func (s *session) kickTubes(ctx context.Context, names []string, states []client.State, count int) error {
	c, names, err := s.dialTubes(ctx, names)
	if err != nil {
		return err
	}
	defer c.Close()
	total := 0
	for _, tube := range names {
		st, err := c.StatsTube(ctx, tube) // use would make it
		if err == nil {
			err = c.Use(ctx, tube)
		}
		if err != nil {
			return err
		}
		n := 0
		switch {
		case len(states) == 0:
			n, err = c.Kick(ctx, count)
		case slices.Contains(states, client.StateBuried) && st.JobsBuried > 0:
			n, err = c.Kick(ctx, int(min(uint64(count), st.JobsBuried))) // no delayed ones are kicked while there are buried ones
		}
		total += n
		if err == nil && slices.Contains(states, client.StateDelayed) {
			n, err = kickDelayed(ctx, c, count)
			total += n
		}
		if err != nil {
			return fmt.Errorf("after %s: %w", countJobs(uint64(total), ""), err)
		}
	}
	return s.did("kicked", total)
}

// kickDelayed kicks the delayed jobs of the tube that is used, whose delays end next, whether there
// are buried ones or not.
func kickDelayed(ctx context.Context, c *client.Conn, count int) (n int, err error) {
	for n < count {
		j, err := c.PeekDelayed(ctx)
		if err != nil {
			return n, ignoreNotFound(err)
		}
		switch err := c.KickJob(ctx, j.ID); {
		case err == nil:
			n++
		case !errors.Is(err, client.ErrNotFound): // else it is ready by now
			return n, err
		}
	}
	return n, nil
}
