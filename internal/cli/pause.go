package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

func newPause() *cobra.Command {
	var d time.Duration
	var tubes tubeOption
	cmd := newCommand("pause", "[TUBE...]", "let nobody reserve jobs of tubes for a while", func(ctx context.Context, s *session, args []string) error {
		if d <= 0 {
			return usageError("--for must be more than 0 ('beanpole resume' ends a pause)")
		}
		return s.pauseAll(ctx, &tubes, args, "paused", d)
	})
	cmd.Example = "  beanpole pause mail --for 10m\n  beanpole pause 'mail.*'"
	tubes.define(cmd, "pause these")
	durationVar(cmd.Flags(), &d, "for", "f", 0, time.Hour, "for this `TIME`")
	return cmd
}

func newResume() *cobra.Command {
	var tubes tubeOption
	cmd := newCommand("resume", "[TUBE...]", "end the pause of tubes", func(ctx context.Context, s *session, args []string) error {
		return s.pauseAll(ctx, &tubes, args, "resumed", 0)
	})
	tubes.define(cmd, "end the pauses of these")
	return cmd
}

func (s *session) pauseAll(ctx context.Context, tubes *tubeOption, args []string, done string, d time.Duration) error {
	names, err := tubes.needed(args)
	if err != nil {
		return err
	}
	c, names, err := s.dialTubes(ctx, names)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, t := range names {
		if err := c.PauseTube(ctx, t, d); err != nil {
			return err
		}
	}
	if s.json {
		return s.printJSON(map[string]int{done: len(names)})
	}
	return nil
}
