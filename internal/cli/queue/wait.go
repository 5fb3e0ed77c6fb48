package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

const waitLong = `Wait until tubes have no ready, reserved or delayed job. With --buried, wait until they have no
buried job either. A tube that does not exist is empty.`

func newWait() *cobra.Command {
	var opt struct {
		every, timeout time.Duration
		buried         bool
	}
	s := new(session)
	cmd := s.Command("wait", "[TUBE...]", "wait until tubes are empty", func(ctx context.Context, args []string) error {
		names := s.tubeNames(args)
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
		b := cliutil.NewProgress(s.Err)
		defer b.End()
		for first := uint64(0); ; {
			left, err := jobsLeft(ctx, s.Conn, names, opt.buried)
			first = max(first, left)
			b.Show(first-left, first)
			switch {
			case err != nil:
				return err
			case left == 0:
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tooLong:
				return exit.WithCode(exit.Nothing, fmt.Errorf("after %s: %s left in %s", opt.timeout, cliutil.Count(left, "job"), strings.Join(names, ", ")))
			case <-time.After(opt.every):
			}
		}
	})
	cmd.Long = waitLong
	cmd.Example = "  beanpole wait mail --timeout 10m"
	f := cmd.Flags()
	cliutil.DurationVar(f, &opt.timeout, "timeout", "", 0, -1, "wait at most this `TIME`, then exit with code 2; 0 does\nnot wait (default unlimited)")
	cliutil.DurationVar(f, &opt.every, "every", "", time.Millisecond, time.Second, "check again after this `TIME`")
	f.BoolVar(&opt.buried, "buried", false, "also wait until no job is buried")
	s.defineTube(cmd, "wait for `TUBES`, in addition to the arguments")
	return cmd
}

// jobsLeft returns the number of jobs in tubes, which need not exist.
func jobsLeft(ctx context.Context, c *client.Conn, names []string, buried bool) (n uint64, err error) {
	stats, err := c.StatsTubeMany(ctx, names)
	if batch, ok := errors.AsType[*client.BatchError](err); ok {
		for _, err := range batch.Errs {
			if ignoreNotFound(err) != nil {
				return 0, err
			}
		}
	} else if err != nil {
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
	return n, nil
}
