package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
)

func newPeek() *cobra.Command {
	var tube string
	cmd := newCommand("peek", "[ID...]", "show jobs, or those that are next in a tube", func(ctx context.Context, s *session, args []string) error {
		if len(args) == 0 {
			return s.peekNext(ctx, tube)
		}
		return s.eachID(ctx, args, "", func(c *client.Conn, id uint64) error {
			j, err := c.Peek(ctx, id)
			if err != nil {
				return err
			}
			return s.printPeeked(ctx, c, j)
		})
	})
	cmd.Long = "Show jobs with their bodies, and change nothing. Without ID, show the job of the\ntube that is next to be reserved, the one whose delay ends next, and the one that\nis next to be kicked."
	cmd.Flags().StringVarP(&tube, "tube", "t", "default", "without ID: the `TUBE` to look into")
	return cmd
}

// peekNext shows the first job of each state of a tube.
func (s *session) peekNext(ctx context.Context, tube string) error {
	c, _, err := s.dialTube(ctx, tube)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Use(ctx, tube); err != nil {
		return err
	}
	found := false
	for _, peek := range []func(context.Context) (client.PeekedJob, error){c.PeekReady, c.PeekDelayed, c.PeekBuried} {
		j, err := peek(ctx)
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
		return &exitError{exitNothing, fmt.Errorf("tube %s has no job that is ready, delayed or buried", tube)}
	}
	return nil
}

// printPeeked prints a job with what the server knows of it, which it may have
// forgotten by now.
func (s *session) printPeeked(ctx context.Context, c *client.Conn, j client.PeekedJob) error {
	st, err := c.StatsJob(ctx, j.ID)
	if err != nil && !errors.Is(err, client.ErrNotFound) {
		return err
	}
	return s.printJob(newJob(j.ID, j.Body, st))
}

func newDelete() *cobra.Command {
	return newCommand("delete", "ID...", "delete jobs that nobody holds", func(ctx context.Context, s *session, args []string) error {
		return s.eachID(ctx, args, "deleted", func(c *client.Conn, id uint64) error {
			return whyNot(ctx, c, id, c.Delete(ctx, id))
		})
	})
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
		return nothing("job %d is reserved: its worker holds it, for %s more at the most", id, st.TimeLeft)
	}
	return nothing("job %d is %s", id, st.State)
}

// newHolding returns a command that takes jobs by their ids to do something with them,
// for what the protocol lets only a connection do that holds the job.
func newHolding(name, done, short string, do func(context.Context, *client.Job, *client.JobStats) error) *cobra.Command {
	return newCommand(name, "ID...", short, func(ctx context.Context, s *session, args []string) error {
		return s.eachID(ctx, args, done, func(c *client.Conn, id uint64) error {
			j, err := c.ReserveJob(ctx, id)
			if err != nil {
				return whyNot(ctx, c, id, err)
			}
			st, err := j.Stats(ctx)
			if err != nil {
				return err
			}
			return do(ctx, j, st)
		})
	})
}

func newBury() *cobra.Command {
	var pri priority
	cmd := newHolding("bury", "buried", "bury jobs that nobody holds", func(ctx context.Context, j *client.Job, st *client.JobStats) error {
		return j.Bury(ctx, pri.or(st))
	})
	pri.define(cmd)
	return cmd
}

func newRelease() *cobra.Command {
	var pri priority
	var delay time.Duration
	cmd := newHolding("release", "released", "make jobs that nobody holds ready, or delay them", func(ctx context.Context, j *client.Job, st *client.JobStats) error {
		return j.Release(ctx, pri.or(st), delay)
	})
	pri.define(cmd)
	durationVar(cmd.Flags(), &delay, "delay", "d", 0, 0, "ready after this `TIME`, such as 10m")
	return cmd
}

const touchLong = `Start the time to run of jobs anew. Only the connection that holds a job can do that:
a job that a worker holds is out of reach, and one that nobody holds has no time to
run. So this takes each job, touches it, and gives it back: it shows that the job can
be had, and counts as a reservation. A worker touches its jobs itself: see 'beanpole
work'.`

func newTouch() *cobra.Command {
	cmd := newHolding("touch", "touched", "take jobs, touch them and give them back", func(ctx context.Context, j *client.Job, st *client.JobStats) error {
		if err := j.Touch(ctx); err != nil {
			return err
		}
		return j.Release(ctx, client.PriorityOf(st.Priority), 0)
	})
	cmd.Long = touchLong
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

func newKick() *cobra.Command {
	var tube string
	var count int
	cmd := newCommand("kick", "[ID...]", "make buried or delayed jobs ready", func(ctx context.Context, s *session, args []string) error {
		if len(args) > 0 {
			return s.eachID(ctx, args, "kicked", func(c *client.Conn, id uint64) error {
				return whyNot(ctx, c, id, c.KickJob(ctx, id))
			})
		}
		if count < 1 {
			return usageError("--count must be 1 or more")
		}
		c, _, err := s.dialTube(ctx, tube)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.Use(ctx, tube); err != nil {
			return err
		}
		n, err := c.Kick(ctx, count)
		if err != nil {
			return err
		}
		if s.json {
			return s.printJSON(map[string]int{"kicked": n})
		}
		_, err = fmt.Fprintf(s.out, "kicked %d\n", n)
		return err
	})
	cmd.Long = "Make jobs ready: those with the IDs, or without ID up to --count of a tube, buried ones\nif there are any, else delayed ones."
	cmd.Flags().StringVarP(&tube, "tube", "t", "default", "without ID: the `TUBE`")
	cmd.Flags().IntVarP(&count, "count", "n", 1, "without ID: at most `N` jobs")
	return cmd
}
