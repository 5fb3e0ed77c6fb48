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

const pauseLong = `Pause tubes: workers cannot reserve their jobs for a while. A tube that is already paused
for longer stays so: 'beanpole resume' ends a pause. If a pattern stands for several tubes
it asks before, unless --yes is given.

With --admin a pattern is paused itself, by the policy of its tubes: also tubes that come
later are, and '*' is all tubes. Otherwise, as on any server, the tubes are paused that
are there. Either survives a restart.`

func newPause() *cobra.Command {
	var d time.Duration
	var tubes tubeOption
	var yes bool
	var pages kit.AdminPages
	cmd := newCommand("pause", "[TUBE...]", "pause tubes: their jobs cannot be reserved for a while", func(ctx context.Context, s *session, args []string) error {
		if d <= 0 {
			return kit.UsageError("--for must be more than 0 ('beanpole resume' ends a pause)")
		}
		given, err := tubes.needed(args)
		if err != nil {
			return err
		}
		yes = yes || !slices.ContainsFunc(given, isPattern)
		if given, err = s.pausePatterns(ctx, &pages, given, d, yes); err != nil || len(given) == 0 {
			return err
		}
		return s.pauseAll(ctx, given, d, yes)
	})
	cmd.Long = pauseLong
	cmd.Example = "  beanpole pause mail --for 10m\n  beanpole pause 'mail.*' --yes\n  beanpole pause '*' --admin :11380"
	tubes.define(cmd, "pause these")
	pages.Define(cmd.Flags(), "", pausePages)
	kit.DurationVar(cmd.Flags(), &d, "for", "f", 0, time.Hour, "for this `TIME`")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func newResume() *cobra.Command {
	var tubes tubeOption
	var pages kit.AdminPages
	cmd := newCommand("resume", "[TUBE...]", "end the pause of tubes", func(ctx context.Context, s *session, args []string) error {
		given, err := tubes.needed(args)
		if err != nil {
			return err
		}
		names, err := s.pausePatterns(ctx, &pages, given, 0, true)
		if err != nil {
			return err
		}
		if err = s.pauseAll(ctx, given, 0, true); len(names) < len(given) && isNotFound(err) {
			return nil // no tube fits the patterns at the moment
		}
		return err
	})
	cmd.Example = "  beanpole resume mail\n  beanpole resume 'test.*'"
	tubes.define(cmd, "end the pauses of these")
	pages.Define(cmd.Flags(), "", pausePages)
	return cmd
}

const pausePages = "pause patterns themselves, or end that, through the admin\npages of a beanpole at `ADDR`"

// pausePatterns lets the policies of patterns pause their tubes, or not any more if d is 0, if the admin pages are
// known. It returns the names that are left, and all that was given if they are not known.
func (s *session) pausePatterns(ctx context.Context, pages *kit.AdminPages, given []string, d time.Duration, yes bool) (rest []string, err error) {
	if pages.Addr == "" || !slices.ContainsFunc(given, isPattern) {
		return given, nil
	}
	a, err := pages.Client(&s.Server)
	if err != nil {
		return nil, err
	}
	for _, pattern := range given {
		in := admin.SetPolicy{OfPolicy: admin.OfPolicy{Pattern: pattern}, Unset: []string{"paused"}}
		switch {
		case !isPattern(pattern):
			rest = append(rest, pattern)
			continue
		case d > 0:
			in.Unset, in.Set = nil, map[string]string{"paused": d.String()}
			if !yes {
				if err := kit.Confirm(s.In, s.Err, fmt.Sprintf("pause all tubes that fit %s, also those that come later, for %s?", pattern, d)); err != nil {
					return nil, err
				}
			}
		}
		if err := s.setPolicy(ctx, a, &in); err != nil {
			return nil, err
		}
	}
	return rest, nil
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
	var changed, longer, still []string
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
		if st, err = c.StatsTube(ctx, name); err == nil && d == 0 && st.PauseLeft > 0 {
			still = append(still, name)
			continue
		}
		changed = append(changed, name)
	}
	if len(still) > 0 {
		s.Note("paused still, by their policies ('beanpole policy explain TUBE' says by which): %s", tubesInWords(still))
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
