package queue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/exit"
)

// A stateOption is the option --state.
type stateOption struct {
	given   []string // without duplicates
	allowed []string
}

// define adds the option to a command.
func (o *stateOption) define(cmd *cobra.Command, allowed []string, usage string) {
	o.allowed = allowed
	cmd.Flags().Func("state", usage+" `STATES`: "+strings.Join(allowed, ", ")+",\nseparated by commas", o.add)
	cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
}

func (o *stateOption) add(names string) error {
	for state := range strings.SplitSeq(names, ",") {
		switch {
		case !slices.Contains(o.allowed, state) && state == "reserved":
			return fmt.Errorf("workers hold reserved jobs; want %s", strings.Join(o.allowed, ", "))
		case !slices.Contains(o.allowed, state):
			return fmt.Errorf("%q is not one of: %s", state, strings.Join(o.allowed, ", "))
		case !slices.Contains(o.given, state):
			o.given = append(o.given, state)
		}
	}
	return nil
}

// check returns an error if the option was not given.
func (o *stateOption) check() error {
	if o.given == nil {
		return exit.UsageError("--state is required: %s, separated by commas", strings.Join(o.allowed, ", "))
	}
	return nil
}
