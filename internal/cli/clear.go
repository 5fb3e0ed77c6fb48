package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
)

// peekState shows the next job of a state of a tube.
func peekState(ctx context.Context, c *client.Conn, tube string, state client.State) (*client.Job, error) {
	if err := c.Use(ctx, tube); err != nil {
		return nil, err
	}
	switch state {
	case client.StateReady:
		return c.PeekReady(ctx)
	case client.StateDelayed:
		return c.PeekDelayed(ctx)
	}
	return c.PeekBuried(ctx)
}

// clearState deletes the jobs of a state of a tube, one after the other, and returns
// how many. A job that a worker takes meanwhile is left to it.
func clearState(ctx context.Context, c *client.Conn, tube string, state client.State) (n int, err error) {
	for {
		j, err := peekState(ctx, c, tube, state)
		if errors.Is(err, client.ErrNotFound) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		switch err := c.Delete(ctx, j.ID); {
		case err == nil:
			n++
		case !errors.Is(err, client.ErrNotFound):
			return n, err
		}
	}
}

const clearLong = `Delete the jobs of a tube that are in the given states. Jobs that a worker holds are
never touched. It asks before, unless --yes is given.

Jobs that come meanwhile are deleted too, so a tube that is being filled may take
long to be empty: pause what puts into it, or drain the server.`

func newClear() *cobra.Command {
	var states []string
	var yes bool
	cmd := newCommand("clear", "TUBE", "delete the jobs of a tube", func(ctx context.Context, s *session, args []string) error {
		wanted, err := parseStates(states)
		if err != nil {
			return err
		}
		c, err := s.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		st, err := c.StatsTube(ctx, args[0])
		if err != nil {
			return err
		}
		if !yes {
			if err := s.confirm(fmt.Sprintf("delete %s of tube %s?", countStates(st, wanted), args[0])); err != nil {
				return err
			}
		}
		total := 0
		for _, state := range wanted {
			n, err := clearState(ctx, c, args[0], state)
			total += n
			if err != nil {
				return fmt.Errorf("after %d jobs: %w", total, err)
			}
		}
		if s.json {
			return s.printJSON(map[string]int{"deleted": total})
		}
		_, err = fmt.Fprintf(s.out, "deleted %d\n", total)
		return err
	})
	cmd.Long = clearLong
	cmd.Example = "  beanpole clear mail --state buried\n  beanpole clear mail --state ready,delayed --yes"
	cmd.Flags().StringSliceVar(&states, "state", nil, "`STATES`: ready, delayed, buried, with commas between\nthem")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.ValidArgsFunction = completeTubes
	return cmd
}

// parseStates reads the names of states in which nobody holds a job.
func parseStates(names []string) ([]client.State, error) {
	if len(names) == 0 {
		return nil, usageError("--state is needed: ready, delayed, buried, or several with commas between them")
	}
	var states []client.State
	for _, name := range names {
		switch s := client.State(name); s {
		case client.StateReady, client.StateDelayed, client.StateBuried:
			states = append(states, s)
		default:
			return nil, usageError("%q is not a state of jobs that can be taken: ready, delayed or buried", name)
		}
	}
	return states, nil
}

// countStates says how many jobs of each state a tube has.
func countStates(st *client.TubeStats, states []client.State) string {
	var parts []string
	for _, s := range states {
		n := map[client.State]uint64{client.StateReady: st.JobsReady, client.StateDelayed: st.JobsDelayed, client.StateBuried: st.JobsBuried}[s]
		parts = append(parts, fmt.Sprintf("%d %s jobs", n, s))
	}
	return strings.Join(parts, " and ")
}

// confirm asks a person. Where there is none it fails.
func (s *session) confirm(question string) error {
	if !term.IsTerminal(os.Stdin.Fd()) {
		return usageError("%s add --yes, since there is no terminal to ask on", question)
	}
	fmt.Fprintf(s.err, "%s [y/N] ", question)
	line, _ := bufio.NewReader(s.in).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(line)); a != "y" && a != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}
