package queue

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

const reserveLong = `Reserve the next job of the tubes, print it, and then delete, bury or release it. The
reservation counts as an attempt of the job; 'beanpole peek' shows a job without a reservation.`

func newReserve() *cobra.Command {
	var opt struct {
		timeout              time.Duration
		remove, bury, giveIt bool
		delay                time.Duration
	}
	s := new(session)
	cmd := s.command("reserve", "[TUBE...]", "reserve the next job and print it", func(ctx context.Context, args []string) error {
		switch {
		case opt.remove && opt.bury, opt.remove && opt.giveIt, opt.bury && opt.giveIt:
			return exit.UsageError("--delete, --bury and --release cannot be used together")
		case opt.delay != 0 && !opt.giveIt:
			return exit.UsageError("--delay requires --release")
		case !opt.remove && !opt.bury && !opt.giveIt:
			return exit.UsageError("one of --delete, --bury or --release is required; 'beanpole peek TUBE' only shows the job")
		}
		if err := s.Connect(ctx); err != nil {
			return err
		}
		if _, err := watchOnly(ctx, s.Conn, s.tubeNames(args)); err != nil {
			return err
		}
		reserve := s.Conn.Reserve
		if opt.timeout >= 0 {
			reserve = func(ctx context.Context) (*client.Job, error) { return s.Conn.ReserveTimeout(ctx, opt.timeout) }
		}
		j, err := reserve(ctx)
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
		if err := s.Out.Flush(); err != nil { // before the job is deleted
			return err
		}
		switch {
		case opt.remove:
			return j.Delete(ctx)
		case opt.bury:
			return s.Conn.Bury(ctx, j.ID, st.Priority)
		}
		return s.Conn.Release(ctx, j.ID, st.Priority, opt.delay)
	})
	cmd.Long = reserveLong
	cmd.Example = "  beanpole reserve mail --delete\n  beanpole reserve mail --timeout 5s --release --delay 1m"
	f := cmd.Flags()
	s.defineTube(cmd, "reserve from `TUBES`, in addition to the arguments")
	cliutil.DurationVar(f, &opt.timeout, "timeout", "", 0, -1, "wait at most this `TIME` for a job; 0 does not wait\n(default unlimited)")
	f.BoolVar(&opt.remove, "delete", false, "delete the job after printing it")
	f.BoolVar(&opt.bury, "bury", false, "bury the job")
	f.BoolVar(&opt.giveIt, "release", false, "release the job")
	cliutil.DurationVar(f, &opt.delay, "delay", "d", 0, 0, "delay the released job by this `TIME`")
	return cmd
}

// watchOnly watches only the named tubes, or the default tube if names is empty. It
// returns these tubes.
func watchOnly(ctx context.Context, c *client.Conn, names []string) ([]string, error) {
	if len(names) == 0 {
		names = []string{defaultTube}
	}
	return names, c.WatchOnly(ctx, names...)
}
