package queue

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

const reserveLong = `Take the next job of the TUBES (default), print it, and then delete, bury or release it,
as an option says. Workers count how often a job was reserved, so a job that is released has
had a try; 'beanpole peek' shows a job and does not take it.`

func newReserve() *cobra.Command {
	var opt struct {
		timeout              time.Duration
		count                int
		remove, bury, giveIt bool
		delay                time.Duration
	}
	s := new(session)
	cmd := s.command("reserve", "[TUBE...]", "take the next job and print it", func(ctx context.Context, args []string) error {
		switch {
		case opt.remove && opt.bury, opt.remove && opt.giveIt, opt.bury && opt.giveIt:
			return cliutil.UsageError("--delete, --bury and --release exclude each other")
		case opt.delay != 0 && !opt.giveIt:
			return cliutil.UsageError("--delay is of --release, which is not given")
		case !opt.remove && !opt.bury && !opt.giveIt:
			return cliutil.UsageError("--delete, --bury or --release is needed: what is to become of the job; 'beanpole peek TUBE' shows it")
		}
		if err := s.Connect(ctx); err != nil {
			return err
		}
		if _, err := watchOnly(ctx, s.Conn, s.allTubes(args)); err != nil {
			return err
		}
		reserve := s.Conn.Reserve
		if opt.timeout >= 0 {
			reserve = func(ctx context.Context) (*client.Job, error) { return s.Conn.ReserveTimeout(ctx, opt.timeout) }
		}
		for n := range opt.count {
			j, err := reserve(ctx)
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
			if err := s.Out.Flush(); err != nil { // before the job is gone
				return err
			}
			switch {
			case opt.remove:
				err = j.Delete(ctx)
			case opt.bury:
				err = s.Conn.Bury(ctx, j.ID, st.Priority)
			case opt.giveIt:
				err = s.Conn.Release(ctx, j.ID, st.Priority, opt.delay)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Long = reserveLong
	cmd.Example = "  beanpole reserve mail --delete\n  beanpole reserve mail --timeout 5s --release --delay 1m"
	f := cmd.Flags()
	s.defineTubes(cmd, "from these")
	cliutil.DurationVar(f, &opt.timeout, "timeout", "", 0, -1, "wait no longer than this `TIME` for a job; 0: not at all\n(until there is one)")
	opt.count = 1
	f.FuncP("count", "n", "take `N` jobs, one after the other (1)", cliutil.IntoCount(&opt.count, "how many"))
	f.BoolVar(&opt.remove, "delete", false, "delete the job when it is printed")
	f.BoolVar(&opt.bury, "bury", false, "bury it")
	f.BoolVar(&opt.giveIt, "release", false, "release it")
	cliutil.DurationVar(f, &opt.delay, "delay", "d", 0, 0, "with --release: ready after this `TIME`")
	return cmd
}

// watchOnly watches tubes, or default if none were named, and returns them.
func watchOnly(ctx context.Context, c *client.Conn, names []string) (tubes []string, err error) {
	if len(names) == 0 {
		names = []string{defaultTube}
	}
	if tubes, err = expand(ctx, c, names); err != nil {
		return nil, err
	}
	return tubes, c.WatchOnly(ctx, tubes...)
}
