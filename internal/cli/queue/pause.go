package queue

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

const pauseLong = `Pause tubes: workers get no jobs from them for a while. A pause replaces an earlier one.

A pattern (* stands for any characters, ? for one) pauses all its tubes, including tubes
that are created later: it sets 'paused' in the policy of the pattern. The command then asks
for confirmation, unless --yes is given. Pauses survive a restart.`

const resumeLong = `End the pauses of tubes. A pattern ends the pauses of all its tubes: it unsets 'paused' in the
policy of the pattern, and resumes each of its tubes. The command then asks for confirmation,
unless --yes is given.`

func newPause() *cobra.Command {
	d := time.Hour
	s := new(session)
	var cmd *cobra.Command
	cmd = s.newPauses("pause", "pause tubes: workers get no jobs from them", pauseLong, func(ctx context.Context, a *admin.Client, name string) (tubes int, err error) {
		if cmd.Flags().Changed("for") && cmd.Flags().Changed("until") {
			return 0, exit.UsageError("give either --for or --until")
		}
		if isPattern(name) {
			return 0, s.setPolicy(ctx, a, &admin.SetPolicy{OfPolicy: admin.OfPolicy{Pattern: name}, Set: map[string]string{"paused": d.String()}})
		}
		return 1, a.PauseTube(ctx, &admin.PauseTube{OfTube: admin.OfTube{Tube: name}, Seconds: wholeSeconds(d)})
	})
	cmd.Example = "  beanpole pause mail --for 10m\n  beanpole pause mail --until 09:00\n  beanpole pause 'mail.*' --yes"
	cliutil.DurationVar(cmd.Flags(), &d, "for", "f", time.Second, time.Hour, "pause for this `TIME`")
	cliutil.UntilVar(cmd.Flags(), &d, "until", "pause until this `CLOCK` time in UTC, such as 09:00")
	return cmd
}

func newResume() *cobra.Command {
	s := new(session)
	cmd := s.newPauses("resume", "end the pauses of tubes", resumeLong, func(ctx context.Context, a *admin.Client, name string) (tubes int, err error) {
		if !isPattern(name) {
			return 1, a.ResumeTube(ctx, &admin.OfTube{Tube: name})
		}
		if err := s.setPolicy(ctx, a, &admin.SetPolicy{OfPolicy: admin.OfPolicy{Pattern: name}, Unset: []string{"paused"}}); err != nil {
			return 0, err
		}
		all, err := findTubes(ctx, a, []string{name})
		if err != nil && !isNotFound(err) {
			return 0, err
		}
		for i := range all {
			if all[i].PauseLeft == 0 {
				continue
			}
			switch err := a.ResumeTube(ctx, &admin.OfTube{Tube: all[i].Name}); {
			case admin.StatusOf(err) == http.StatusConflict: // another policy pauses it
				s.Note("%v", err)
			case err != nil:
				return tubes, err
			default:
				tubes++
			}
		}
		return tubes, nil
	})
	cmd.Example = "  beanpole resume mail\n  beanpole resume 'test.*' --yes"
	return cmd
}

// newPauses returns a command that applies do to tubes and patterns. do returns the
// number of tubes that it changed one by one.
func (s *session) newPauses(name, short, long string, do func(ctx context.Context, a *admin.Client, name string) (tubes int, err error)) *cobra.Command {
	cmd := s.adminCommand(name, "[TUBE...]", short, long, func(ctx context.Context, a *admin.Client, args []string) error {
		names := s.tubeNames(args)
		if len(names) == 0 {
			return errNoTube
		}
		if i := slices.IndexFunc(names, isPattern); i >= 0 {
			if err := s.Confirm(fmt.Sprintf("%s all tubes that match %s?", strings.ToUpper(name[:1])+name[1:], names[i])); err != nil {
				return err
			}
		}
		changed := 0
		for _, name := range names {
			n, err := do(ctx, a, name)
			if changed += n; err != nil {
				return err
			}
		}
		if changed == 0 { // setPolicy has printed the policies
			return nil
		}
		return s.printCount(name+"d", uint64(changed))
	})
	s.defineTube(cmd, name+" `TUBES`, in addition to the arguments")
	s.DefineYes(cmd)
	return cmd
}
