package queue

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

const pauseLong = `Pause tubes: workers get no jobs from them for a while. A pause replaces an earlier one, and
survives a restart.

'beanpole policy set PATTERN paused=1h' pauses all tubes of a pattern, including tubes that
are created later.`

const resumeLong = `End the pauses of tubes. 'beanpole policy unset PATTERN paused' ends the pause of a pattern.`

func newPause() *cobra.Command {
	d := time.Hour
	cmd := newPauses("pause", "pause tubes: workers get no jobs from them", pauseLong, func(ctx context.Context, a *admin.Client, tube admin.OfTube) error {
		return a.PauseTube(ctx, &admin.PauseTube{OfTube: tube, Seconds: wholeSeconds(d)})
	})
	cmd.Example = "  beanpole pause mail --for 10m\n  beanpole pause mail --until 09:00"
	cliutil.DurationVar(cmd.Flags(), &d, "for", "f", time.Second, time.Hour, "pause for this `TIME`")
	cliutil.UntilVar(cmd.Flags(), &d, "until", "pause until this `CLOCK` time in UTC, such as 09:00")
	return cmd
}

func newResume() *cobra.Command {
	cmd := newPauses("resume", "end the pauses of tubes", resumeLong, func(ctx context.Context, a *admin.Client, tube admin.OfTube) error {
		return a.ResumeTube(ctx, &tube)
	})
	cmd.Example = "  beanpole resume mail"
	return cmd
}

// newPauses returns a command that calls do for each tube.
func newPauses(name, short, long string, do func(ctx context.Context, a *admin.Client, tube admin.OfTube) error) *cobra.Command {
	s := new(session)
	cmd := s.adminCommand(name, "[TUBE...]", short, long, func(ctx context.Context, a *admin.Client, args []string) error {
		names := s.tubeNames(args)
		if len(names) == 0 {
			return errNoTube
		}
		for _, tube := range names {
			if isPattern(tube) {
				return exit.UsageError("%s is a pattern; 'beanpole policy' pauses and resumes the tubes of a pattern (see: beanpole %s --help)", tube, name)
			}
			if err := do(ctx, a, admin.OfTube{Tube: tube}); err != nil {
				return err
			}
		}
		return s.printCount(name+"d", uint64(len(names)))
	})
	s.defineTube(cmd, name+" `TUBES`, in addition to the arguments")
	return cmd
}
