package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
)

const pauseLong = `Pause tubes: workers cannot reserve their jobs for a while. A tube that is already paused
for longer stays so: 'beanpole resume' ends a pause. If a pattern stands for several tubes
it asks before, unless --yes is given.`

func newPause() *cobra.Command {
	var d time.Duration
	var tubes tubeOption
	var yes bool
	cmd := newCommand("pause", "[TUBE...]", "pause tubes: their jobs cannot be reserved for a while", func(ctx context.Context, s *session, args []string) error {
		if d <= 0 {
			return kit.UsageError("--for must be more than 0 ('beanpole resume' ends a pause)")
		}
		given, err := tubes.needed(args)
		if err != nil {
			return err
		}
		yes = yes || !slices.ContainsFunc(given, isPattern)
		return s.pauseAll(ctx, given, d, yes)
	})
	cmd.Long = pauseLong
	cmd.Example = "  beanpole pause mail --for 10m\n  beanpole pause 'mail.*' --yes"
	tubes.define(cmd, "pause these")
	kit.DurationVar(cmd.Flags(), &d, "for", "f", 0, time.Hour, "for this `TIME`")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func newResume() *cobra.Command {
	var tubes tubeOption
	cmd := newCommand("resume", "[TUBE...]", "end the pause of tubes", func(ctx context.Context, s *session, args []string) error {
		given, err := tubes.needed(args)
		if err != nil {
			return err
		}
		return s.pauseAll(ctx, given, 0, true)
	})
	cmd.Example = "  beanpole resume mail\n  beanpole resume 'test.*'"
	tubes.define(cmd, "end the pauses of these")
	return cmd
}

// pauseAll pauses tubes, or ends their pauses if d is 0, where that changes something.
func (s *session) pauseAll(ctx context.Context, given []string, d time.Duration, yes bool) error {
	c, names, err := s.dialTubes(ctx, given)
	if err != nil {
		return err
	}
	defer c.Close()
	if !yes && len(names) > 1 {
		if err := kit.Confirm(s.In, s.Err, fmt.Sprintf("pause %s, for %s?", tubesInWords(names), d)); err != nil {
			return err
		}
	}
	var changed, longer []string
	for _, name := range names {
		st, err := c.StatsTube(ctx, name)
		switch {
		case errors.Is(err, client.ErrUnauthorized): // it may manage the tube all the same
		case err != nil:
			return err
		case d > 0 && st.PauseLeft > d:
			longer = append(longer, name)
			continue
		case d == 0 && st.PauseLeft == 0:
			continue
		}
		if err := c.PauseTube(ctx, name, d); err != nil {
			return err
		}
		changed = append(changed, name)
	}
	return s.printPauses(changed, longer, d)
}

// printPauses says which pauses were changed, and which tubes were left as they are because they
// are paused for longer.
func (s *session) printPauses(changed, longer []string, d time.Duration) error {
	switch {
	case s.JSON && d > 0:
		return s.PrintJSON(map[string]int{"paused": len(changed), "longer": len(longer)})
	case s.JSON:
		return s.PrintJSON(map[string]int{"resumed": len(changed)})
	}
	what, which := "resumed", "no tube"
	if d > 0 {
		what = "paused for " + d.String()
	}
	if len(changed) > 0 {
		which = tubesInWords(changed)
	}
	fmt.Fprintf(s.Out, "%s: %s\n", what, which)
	if len(longer) > 0 {
		fmt.Fprintf(s.Out, "paused for longer already: %s\n", tubesInWords(longer))
	}
	return nil
}
