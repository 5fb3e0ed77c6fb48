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
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

const pauseLong = `Pause tubes: workers cannot reserve their jobs for a while. A tube that is already paused
for longer stays so: 'beanpole resume' ends a pause. If a pattern stands for several tubes
it asks before, unless --yes is given.

With --admin a pattern is paused itself, by the policy of its tubes: also tubes that come
later are, and '*' is all tubes. Otherwise, as on any server, the tubes are paused that
are there. Either survives a restart.`

func newPause() *cobra.Command {
	var d time.Duration
	var yes bool
	cmd := newPauses("pause", "pause tubes: their jobs cannot be reserved for a while", "pause these", func() (time.Duration, bool, error) {
		if d <= 0 {
			return d, yes, cliutil.UsageError("--for must be more than 0 ('beanpole resume' ends a pause)")
		}
		return d, yes, nil
	})
	cmd.Long = pauseLong
	cmd.Example = "  beanpole pause mail --for 10m\n  beanpole pause 'mail.*' --yes\n  beanpole pause '*' --admin :11380"
	cliutil.DurationVar(cmd.Flags(), &d, "for", "f", 0, time.Hour, "for this `TIME`")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func newResume() *cobra.Command {
	cmd := newPauses("resume", "end the pause of tubes", "end the pauses of these", func() (time.Duration, bool, error) { return 0, true, nil })
	cmd.Example = "  beanpole resume mail\n  beanpole resume 'test.*'"
	return cmd
}

// newPauses returns a command that pauses tubes for as long as options says, or ends their pauses if
// that is 0. yes is not to ask.
func newPauses(name, short, these string, options func() (d time.Duration, yes bool, err error)) *cobra.Command {
	s := new(session)
	cmd := s.command(name, "[TUBE...]", short, func(ctx context.Context, args []string) error {
		d, yes, err := options()
		if err != nil {
			return err
		}
		names := s.allTubes(args)
		yes = yes || !slices.ContainsFunc(names, isPattern)
		byPolicy := s.Admin != "" && slices.ContainsFunc(names, isPattern)
		if byPolicy {
			if err := s.pausePatterns(ctx, names, d, yes); err != nil {
				return err
			}
			if d > 0 {
				if names = slices.DeleteFunc(names, isPattern); len(names) == 0 {
					return nil
				}
			}
		}
		there, err := s.connectTubes(ctx, names)
		if byPolicy && isNotFound(err) { // no tube fits a pattern at the moment
			if names = slices.DeleteFunc(names, isPattern); len(names) == 0 {
				return nil
			}
			there, err = s.connectTubes(ctx, names)
		}
		names = there
		if err == nil && !yes && len(names) > 1 {
			err = cliutil.Confirm(s.In, s.Err, fmt.Sprintf("pause %s, for %s?", tubesInWords(names), d))
		}
		if err != nil {
			return err
		}
		return s.pauseAll(ctx, names, d)
	})
	s.defineTubes(cmd, these)
	s.DefineAdmin(cmd, "", "pause patterns themselves, or end that, through the admin\npages of a beanpole at `ADDR`")
	return cmd
}

// pausePatterns lets the policies of patterns pause their tubes, or not any more if d is 0.
func (s *session) pausePatterns(ctx context.Context, names []string, d time.Duration, yes bool) error {
	a, err := s.AdminClient()
	if err != nil {
		return err
	}
	for _, pattern := range names {
		if !isPattern(pattern) {
			continue
		}
		in := admin.SetPolicy{OfPolicy: admin.OfPolicy{Pattern: pattern}, Unset: []string{"paused"}}
		if d > 0 {
			in.Unset, in.Set = nil, map[string]string{"paused": d.String()}
		}
		if !yes {
			if err := cliutil.Confirm(s.In, s.Err, fmt.Sprintf("pause all tubes that fit %s, also those that come later, for %s?", pattern, d)); err != nil {
				return err
			}
		}
		if err := s.setPolicy(ctx, a, &in); err != nil {
			return err
		}
	}
	return nil
}

// pauseAll pauses tubes, or ends their pauses if d is 0, where that changes something.
func (s *session) pauseAll(ctx context.Context, names []string, d time.Duration) error {
	var changed, longer, still []string
	for _, name := range names {
		st, err := s.Conn.StatsTube(ctx, name)
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
		if err := s.Conn.PauseTube(ctx, name, d); err != nil {
			return err
		}
		if st, err = s.Conn.StatsTube(ctx, name); err == nil && d == 0 && st.PauseLeft > 0 {
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
	if d == 0 {
		return s.Print(map[string]int{"resumed": len(changed)}, "resumed: %s", tubesInWords(changed))
	}
	numbers := map[string]int{"paused": len(changed), "longer": len(longer)}
	if len(longer) > 0 {
		return s.Print(numbers, "paused for %s: %s\npaused for longer already: %s", d, tubesInWords(changed), tubesInWords(longer))
	}
	return s.Print(numbers, "paused for %s: %s", d, tubesInWords(changed))
}
