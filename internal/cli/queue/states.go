package queue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// allStates are the states in the order in which their jobs are listed.
var allStates = []client.State{client.StateReady, client.StateReserved, client.StateDelayed, client.StateBuried}

// idleStates are those in which nobody holds a job.
var idleStates = []client.State{client.StateReady, client.StateDelayed, client.StateBuried}

// A stateOption is the option --state of a command: the states of the jobs that it is
// about.
type stateOption struct {
	given []client.State // each once
	of    []client.State // those that can be given
}

// define adds the option to a command. explained says what is done with these jobs.
func (o *stateOption) define(cmd *cobra.Command, of []client.State, explained string) {
	o.of = of
	cmd.Flags().Func("state", explained+" `STATES`: "+joinStates(of, ", ")+",\nwith commas between them", o.add)
	cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(strings.Split(joinStates(of, ","), ","), cobra.ShellCompDirectiveNoFileComp))
}

func (o *stateOption) add(names string) error {
	for name := range strings.SplitSeq(names, ",") {
		state := client.State(name)
		switch {
		case !slices.Contains(o.of, state) && state == client.StateReserved:
			return fmt.Errorf("jobs that are reserved belong to their workers: --state takes %s", joinStates(o.of, ", "))
		case !slices.Contains(o.of, state):
			return fmt.Errorf("%q is not one of: %s", name, joinStates(o.of, ", "))
		case !slices.Contains(o.given, state):
			o.given = append(o.given, state)
		}
	}
	return nil
}

// check makes sure that a state was given.
func (o *stateOption) check() error {
	if o.given == nil {
		return cliutil.UsageError("--state is needed: %s, or several with commas between them", joinStates(o.of, ", "))
	}
	return nil
}

// joinStates joins the names of states.
func joinStates(states []client.State, between string) string {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = string(s)
	}
	return strings.Join(names, between)
}

// countStates says how many jobs of each state there are.
func countStates(counts []uint64, states []client.State) string {
	var parts []string
	for i, state := range states {
		parts = append(parts, cliutil.Count(counts[i], string(state)+" job"))
	}
	return strings.Join(parts, " and ")
}

// jobsIn returns how many jobs of a tube are in a state.
func jobsIn(st *client.TubeStats, s client.State) uint64 {
	switch s {
	case client.StateReady:
		return st.JobsReady
	case client.StateDelayed:
		return st.JobsDelayed
	case client.StateBuried:
		return st.JobsBuried
	}
	return st.JobsReserved
}
