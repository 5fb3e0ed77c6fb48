package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
)

const reserveLong = `Take the next job, print it, and then do with it what an option says. Without one
it is given back: as with a worker that goes away, it is ready again as soon as the
command ends.`

func newReserve() *cobra.Command {
	var opt struct {
		tubes                []string
		timeout              time.Duration
		count                int
		remove, bury, giveIt bool
		delay                time.Duration
	}
	cmd := newCommand("reserve", "", "take the next job and print it", func(ctx context.Context, s *session, _ []string) error {
		if opt.remove && opt.bury || opt.remove && opt.giveIt || opt.bury && opt.giveIt {
			return usageError("--delete, --bury and --release exclude each other")
		}
		switch {
		case opt.count < 1:
			return usageError("--count must be 1 or more")
		case opt.delay != 0 && !opt.giveIt:
			return usageError("--delay is of --release, which is not given")
		}
		c, err := s.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.WatchOnly(ctx, opt.tubes...); err != nil {
			return err
		}
		for n := range opt.count {
			j, err := reserveWithin(ctx, c, opt.timeout)
			if errors.Is(err, client.ErrTimedOut) && n > 0 {
				return nil // some is what there was
			}
			if err != nil {
				return err
			}
			st, err := j.Stats(ctx)
			if err != nil {
				return err
			}
			if err := s.printJob(newJob(j.ID, j.Body, st)); err != nil {
				return err
			}
			if err := s.out.Flush(); err != nil { // before the job is gone
				return err
			}
			switch {
			case opt.remove:
				err = j.Delete(ctx)
			case opt.bury:
				err = j.Bury(ctx, client.PriorityOf(st.Priority))
			case opt.giveIt:
				err = j.Release(ctx, client.PriorityOf(st.Priority), opt.delay)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Long = reserveLong
	f := cmd.Flags()
	f.StringSliceVarP(&opt.tubes, "tube", "t", []string{"default"}, "from these `TUBES`; may be repeated")
	durationVar(f, &opt.timeout, "timeout", "", 0, -1, "wait no longer than this `TIME` for a job; 0: not at all\n(until there is one)")
	f.IntVarP(&opt.count, "count", "n", 1, "take `N` jobs, one after the other")
	f.BoolVar(&opt.remove, "delete", false, "delete the job when it is printed")
	f.BoolVar(&opt.bury, "bury", false, "bury it")
	f.BoolVar(&opt.giveIt, "release", false, "release it")
	durationVar(f, &opt.delay, "delay", "d", 0, 0, "with --release: ready after this `TIME`")
	return cmd
}

// reserveWithin takes a job, and waits for one no longer than wait; negative: for
// ever.
func reserveWithin(ctx context.Context, c *client.Conn, wait time.Duration) (*client.Job, error) {
	if wait < 0 {
		return c.Reserve(ctx)
	}
	return c.ReserveTimeout(ctx, wait)
}
