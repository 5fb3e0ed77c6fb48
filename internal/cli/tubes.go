package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
)

// A tube as JSON has it. Times are whole seconds.
type tube struct {
	Name      string `json:"name"`
	Ready     uint64 `json:"ready"`
	Urgent    uint64 `json:"urgent"`
	Reserved  uint64 `json:"reserved"`
	Delayed   uint64 `json:"delayed"`
	Buried    uint64 `json:"buried"`
	Waiting   uint64 `json:"waiting"`
	Watching  uint64 `json:"watching"`
	Using     uint64 `json:"using"`
	TotalJobs uint64 `json:"total_jobs"`
	Deletes   uint64 `json:"deletes"`
	PauseLeft int64  `json:"pause_left"`
}

func newTube(st *client.TubeStats) tube {
	return tube{
		Name: st.Name, Ready: st.JobsReady, Urgent: st.JobsUrgent, Reserved: st.JobsReserved, Delayed: st.JobsDelayed,
		Buried: st.JobsBuried, Waiting: st.Waiting, Watching: st.Watching, Using: st.Using, TotalJobs: st.TotalJobs,
		Deletes: st.CmdDelete, PauseLeft: seconds(st.PauseLeft),
	}
}

func newTubes() *cobra.Command {
	cmd := newCommand("tubes", "[NAME...]", "list the tubes with their jobs", func(ctx context.Context, s *session, args []string) error {
		c, err := s.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		tubes, hidden, err := loadTubes(ctx, c, args)
		if err != nil {
			return err
		}
		if hidden > 0 {
			s.note("tubes left out, since the server does not let us look at them: %d", hidden)
		}
		return s.printTubes(tubes)
	})
	cmd.Long = "List all tubes, or those with the NAMES, with how many jobs they have."
	cmd.ValidArgsFunction = completeTubes
	return cmd
}

// loadTubes asks for the tubes with these names, or for all. One that has gone
// meanwhile is left out, and one that we may not look at is hidden; one that was asked
// for by name must be there.
func loadTubes(ctx context.Context, c *client.Conn, names []string) (tubes []tube, hidden int, err error) {
	asked := len(names) > 0
	if !asked {
		if names, err = c.ListTubes(ctx); err != nil {
			return nil, 0, err
		}
		slices.Sort(names)
	}
	for _, name := range names {
		st, err := c.StatsTube(ctx, name)
		switch {
		case err == nil:
			tubes = append(tubes, newTube(st))
		case asked:
			return nil, 0, err
		case errors.Is(err, client.ErrNotFound):
		case errors.Is(err, client.ErrUnauthorized):
			hidden++
		default:
			return nil, 0, err
		}
	}
	return tubes, hidden, nil
}

func (s *session) printTubes(tubes []tube) error {
	if s.json {
		for _, t := range tubes {
			if err := s.printJSON(t); err != nil {
				return err
			}
		}
		return nil
	}
	columns := []column{{"TUBE", false}, {"READY", true}, {"RESERVED", true}, {"DELAYED", true}, {"BURIED", true},
		{"WAITING", true}, {"TOTAL", true}, {"PAUSED", false}}
	var rows [][]string
	for _, t := range tubes {
		paused := ""
		if t.PauseLeft > 0 {
			paused = (time.Duration(t.PauseLeft) * time.Second).String()
		}
		row := []string{t.Name}
		for _, n := range []uint64{t.Ready, t.Reserved, t.Delayed, t.Buried, t.Waiting, t.TotalJobs} {
			row = append(row, strconv.FormatUint(n, 10))
		}
		rows = append(rows, append(row, paused))
	}
	return s.printTable(columns, rows)
}

func newPause() *cobra.Command {
	var d time.Duration
	cmd := newCommand("pause", "TUBE...", "let nobody reserve jobs of tubes for a while", func(ctx context.Context, s *session, args []string) error {
		if d <= 0 {
			return usageError("--for must be more than 0 ('beanpole resume' ends a pause)")
		}
		return s.pauseAll(ctx, args, "paused", d)
	})
	durationVar(cmd.Flags(), &d, "for", "f", 0, time.Hour, "for this `TIME`")
	cmd.ValidArgsFunction = completeTubes
	return cmd
}

func newResume() *cobra.Command {
	cmd := newCommand("resume", "TUBE...", "end the pause of tubes", func(ctx context.Context, s *session, args []string) error {
		return s.pauseAll(ctx, args, "resumed", 0)
	})
	cmd.ValidArgsFunction = completeTubes
	return cmd
}

func (s *session) pauseAll(ctx context.Context, tubes []string, done string, d time.Duration) error {
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, t := range tubes {
		if err := c.PauseTube(ctx, t, d); err != nil {
			return err
		}
	}
	if s.json {
		return s.printJSON(map[string]int{done: len(tubes)})
	}
	return nil
}

func newPing() *cobra.Command {
	return newCommand("ping", "", "ask the server for a sign of life", func(ctx context.Context, s *session, _ []string) error {
		start := time.Now()
		c, err := s.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		err = c.Ping(ctx)
		if errors.Is(err, client.ErrUnauthorized) && s.server.givenToken() == "" {
			err = nil // it is there, and wants to know who asks
		}
		if err != nil {
			return err
		}
		took := time.Since(start)
		if s.json {
			return s.printJSON(map[string]float64{"milliseconds": float64(took.Microseconds()) / 1000})
		}
		_, err = fmt.Fprintf(s.out, "%s answers after %s\n", s.server.addr, took.Round(time.Microsecond))
		return err
	})
}

const waitLong = `Wait until tubes have no job that is ready, reserved or delayed: all is done that
was asked for. Buried jobs do not count, unless --buried is given. A tube that does
not exist is empty.`

func newWait() *cobra.Command {
	var opt struct {
		every, timeout time.Duration
		buried         bool
	}
	cmd := newCommand("wait", "TUBE...", "wait until tubes are empty", func(ctx context.Context, s *session, args []string) error {
		var tooLong <-chan time.Time
		if opt.timeout > 0 {
			tooLong = time.After(opt.timeout)
		}
		c, err := s.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		for {
			left, err := jobsLeft(ctx, c, args, opt.buried)
			switch {
			case err != nil:
				return err
			case left == 0 && s.json:
				return s.printJSON(map[string]uint64{"left": 0})
			case left == 0:
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tooLong:
				if s.json {
					s.printJSON(map[string]uint64{"left": left})
					s.out.Flush()
				}
				return &exitError{exitNothing, fmt.Errorf("after %s there %s in %s", opt.timeout, isOrAre(left), strings.Join(args, ", "))}
			case <-time.After(opt.every):
			}
		}
	})
	cmd.Long = waitLong
	f := cmd.Flags()
	durationVar(f, &opt.timeout, "timeout", "", 0, 0, "wait no longer than this `TIME`, and end with exit code 2\n(until they are empty)")
	durationVar(f, &opt.every, "every", "", time.Millisecond, time.Second, "ask again after this `TIME`")
	f.BoolVar(&opt.buried, "buried", false, "wait for buried jobs to go too")
	cmd.ValidArgsFunction = completeTubes
	return cmd
}

// jobsLeft counts the jobs of tubes.
func jobsLeft(ctx context.Context, c *client.Conn, tubes []string, buried bool) (n uint64, err error) {
	for _, name := range tubes {
		st, err := c.StatsTube(ctx, name)
		if errors.Is(err, client.ErrNotFound) {
			continue
		}
		if err != nil {
			return 0, err
		}
		n += st.JobsReady + st.JobsReserved + st.JobsDelayed
		if buried {
			n += st.JobsBuried
		}
	}
	return n, nil
}
