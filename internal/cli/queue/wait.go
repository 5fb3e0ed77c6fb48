package queue

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

const waitLong = `Wait until tubes have no job that is ready, reserved or delayed: all is done that
was asked for. Buried jobs do not count, unless --buried is given. A tube that does
not exist is empty.`

func newWait() *cobra.Command {
	var opt struct {
		every, timeout time.Duration
		buried         bool
	}
	s := new(session)
	cmd := s.command("wait", "[TUBE...]", "wait until tubes are empty", func(ctx context.Context, args []string) error {
		names := s.allTubes(args)
		if len(names) == 0 {
			return errNoTube
		}
		var tooLong <-chan time.Time
		if opt.timeout >= 0 {
			tooLong = time.After(opt.timeout)
		}
		if err := s.Connect(ctx); err != nil {
			return err
		}
		b := cliutil.NewBar(s.Err, "jobs done")
		defer b.End()
		for first := uint64(0); ; {
			left, err := jobsLeft(ctx, s.Conn, names, opt.buried)
			first = max(first, left)
			b.Show(first-left, first, int(first-left))
			switch {
			case err != nil:
				return err
			case left == 0 && s.JSON:
				b.End()
				return s.PrintJSON(map[string]uint64{"left": 0})
			case left == 0:
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tooLong:
				if s.JSON {
					s.PrintJSON(map[string]uint64{"left": left})
				}
				return cliutil.WithCode(cliutil.ExitNothing, fmt.Errorf("after %s: %s left in %s", opt.timeout, cliutil.Count(left, "job"), strings.Join(names, ", ")))
			case <-time.After(opt.every):
			}
		}
	})
	cmd.Long = waitLong
	cmd.Example = "  beanpole wait mail --timeout 10m"
	f := cmd.Flags()
	cliutil.DurationVar(f, &opt.timeout, "timeout", "", 0, -1, "wait no longer than this `TIME`, and end with exit\ncode 2; 0: not at all (until they are empty)")
	cliutil.DurationVar(f, &opt.every, "every", "", time.Millisecond, time.Second, "ask again after this `TIME`")
	f.BoolVar(&opt.buried, "buried", false, "wait for buried jobs to go too")
	s.defineTubes(cmd, "wait for these")
	return cmd
}

// jobsLeft counts the jobs of tubes, of which none need be there.
func jobsLeft(ctx context.Context, c *client.Conn, names []string, buried bool) (n uint64, err error) {
	for _, name := range names {
		tubes, err := expand(ctx, c, []string{name})
		if isNotFound(err) { // a pattern that fits none: now, or yet
			continue
		}
		if err != nil {
			return 0, err
		}
		stats, err := c.StatsTubeMany(ctx, tubes)
		if err := butNotFound(err); err != nil {
			return 0, err
		}
		for _, st := range stats {
			if st == nil {
				continue
			}
			n += st.JobsReady + st.JobsReserved + st.JobsDelayed
			if buried {
				n += st.JobsBuried
			}
		}
	}
	return n, nil
}
