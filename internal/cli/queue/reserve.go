package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
)

const reserveLong = `Take the next job of the TUBES (default), print it, and then do with it what an option
says. Without one it is only shown and not taken, since workers count how often a job was
reserved; but where a client may reserve and not peek, it is reserved and given back.`

// lookEvery is how often a command looks for a job that it does not take.
const lookEvery = 100 * time.Millisecond

func newReserve() *cobra.Command {
	var opt struct {
		tubes                tubeOption
		timeout              time.Duration
		count                int
		remove, bury, giveIt bool
		delay                time.Duration
	}
	cmd := newCommand("reserve", "[TUBE...]", "take the next job and print it", func(ctx context.Context, s *session, args []string) error {
		if opt.remove && opt.bury || opt.remove && opt.giveIt || opt.bury && opt.giveIt {
			return kit.UsageError("--delete, --bury and --release exclude each other")
		}
		switch {
		case opt.count < 1:
			return kit.UsageError("--count must be 1 or more")
		case opt.delay != 0 && !opt.giveIt:
			return kit.UsageError("--delay is of --release, which is not given")
		}
		look := !opt.remove && !opt.bury && !opt.giveIt
		if look && opt.count > 1 {
			return kit.UsageError("--count is of --delete, --bury or --release, and none is given; 'beanpole jobs TUBE --state ready' shows many")
		}
		c, err := s.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		tubes, err := watchOnly(ctx, c, slices.Concat(args, opt.tubes.given))
		if err != nil {
			return err
		}
		if look {
			if err := s.look(ctx, c, tubes, opt.timeout); !errors.Is(err, client.ErrUnauthorized) {
				return err
			}
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
			if err := s.Out.Flush(); err != nil { // before the job is gone
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
	cmd.Example = "  beanpole reserve mail\n  beanpole reserve mail --timeout 5s --delete"
	f := cmd.Flags()
	opt.tubes.define(cmd, "from these")
	kit.DurationVar(f, &opt.timeout, "timeout", "", 0, -1, "wait no longer than this `TIME` for a job; 0: not at all\n(until there is one)")
	f.IntVarP(&opt.count, "count", "n", 1, "take `N` jobs, one after the other")
	f.BoolVar(&opt.remove, "delete", false, "delete the job when it is printed")
	f.BoolVar(&opt.bury, "bury", false, "bury it")
	f.BoolVar(&opt.giveIt, "release", false, "release it")
	kit.DurationVar(f, &opt.delay, "delay", "d", 0, 0, "with --release: ready after this `TIME`")
	return cmd
}

// look prints the job of tubes that is next to be reserved. It waits for one no longer
// than wait; negative: for ever.
func (s *session) look(ctx context.Context, c *client.Conn, tubes []string, wait time.Duration) error {
	var tooLong <-chan time.Time
	if wait >= 0 {
		tooLong = time.After(wait)
	}
	for {
		j, err := nextReady(ctx, c, tubes)
		if !errors.Is(err, client.ErrNotFound) {
			if err == nil {
				err = s.printJob(j)
			}
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tooLong:
			return client.ErrTimedOut
		case <-time.After(lookEvery):
		}
	}
}

// nextReady returns the job of tubes that is next to be reserved, or client.ErrNotFound.
func nextReady(ctx context.Context, c *client.Conn, tubes []string) (next jobjson.Job, err error) {
	for _, tube := range tubes {
		j, err := peekState(ctx, c, tube, client.StateReady)
		var st *client.JobStats
		if err == nil {
			st, err = c.StatsJob(ctx, j.ID)
		}
		switch {
		case errors.Is(err, client.ErrNotFound):
		case err != nil:
			return next, err
		case next.ID == 0 || cmp.Or(cmp.Compare(st.Priority, next.Priority), cmp.Compare(st.ID, next.ID)) < 0:
			next = newJob(j.ID, j.Body, st)
		}
	}
	if next.ID == 0 {
		return next, client.ErrNotFound
	}
	return next, nil
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

// reserveWithin takes a job, and waits for one no longer than wait; negative: for
// ever.
func reserveWithin(ctx context.Context, c *client.Conn, wait time.Duration) (*client.Job, error) {
	if wait < 0 {
		return c.Reserve(ctx)
	}
	return c.ReserveTimeout(ctx, wait)
}
