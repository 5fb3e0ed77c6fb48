package bench

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	expensiveTubes = 30_000
	expensiveJobs  = 500_000

	kickers       = 500
	pausedWorkers = 2_000
	holders       = 50
)

// expensive looks at clients beside others that ask much of the server with few commands.
func expensive(o *Options) Experiment {
	return disturbed{
		name: "expensive",
		title: fmt.Sprintf("%d connections with one command in flight beside one that watches %s tubes, %d that kick and %d that hold %s jobs",
			interactiveClients, load.Count(o.watched()), kickers, holders, load.Count(o.jobs(expensiveJobs))),
		pace: pace,
		disturbances: []disturbance{
			{"reserves from many tubes", 10 * time.Millisecond, beginReserves},
			{"waits for many tubes", 10 * time.Millisecond, beginWaits},
			{"many kicks", 20 * time.Millisecond, beginKicks},
			{"the end of a pause", 20 * time.Millisecond, beginResume},
			{"the end of connections with many jobs", 20 * time.Millisecond, beginClosing},
		},
	}.experiment()
}

// watched is how many tubes are watched by the client that watches many.
func (o *Options) watched() int { return cmp.Or(o.Tubes, expensiveTubes) }

// group opens connections that use and watch one tube.
func (t *trial) group(ctx context.Context, size int, tube string) ([]*load.Dialog, error) {
	group := make([]*load.Dialog, size)
	for i := range group {
		d, err := t.dial(ctx)
		if err != nil {
			return nil, err
		}
		if err := d.ChooseTube(tube); err != nil {
			return nil, err
		}
		group[i] = d
	}
	return group, nil
}

// together does something with all connections at once.
func together(group []*load.Dialog, do func(*load.Dialog) error) error {
	var g errgroup.Group
	for _, d := range group {
		g.Go(func() error { return do(d) })
	}
	return g.Wait()
}

// watchMany opens a connection that watches many tubes, which no other one uses.
func (t *trial) watchMany(ctx context.Context) (*load.Dialog, error) {
	d, err := t.dial(ctx)
	if err != nil {
		return nil, err
	}
	watch := func(out []byte, i int) []byte { return wire.AppendWatch(out, tubeName(i)) }
	return d, d.Pipeline(t.watched(), watch, nil, wire.Watching)
}

// beginReserves is a client that asks for a job of very many tubes, which are
// empty, again and again.
func beginReserves(ctx context.Context, t *trial) (func(context.Context) error, error) {
	d, err := t.watchMany(ctx)
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := d.Repeat(100, wire.AppendReserveTimeout(nil, 0), wire.TimedOut); err != nil {
				return err
			}
		}
		return nil
	}, err
}

// beginWaits is a client that waits for a job of very many tubes, is given one,
// and waits again.
func beginWaits(ctx context.Context, t *trial) (func(context.Context) error, error) {
	d, err := t.watchMany(ctx)
	if err != nil {
		return nil, err
	}
	producer, err := t.dial(ctx)
	if err != nil {
		return nil, err
	}
	_, err = producer.Do(wire.AppendUse(nil, tubeName(t.watched()/2)), wire.Using)
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := d.Send(wire.AppendReserve(nil)); err != nil {
				return err
			}
			if _, err := producer.Do(wire.AppendPut(nil, 0, 0, jobTTR, nil), wire.Inserted); err != nil {
				return err
			}
			r, err := d.Receive(wire.Reserved)
			if err != nil {
				return err
			}
			if _, err := d.Do(wire.AppendDelete(nil, r.ID), wire.Deleted); err != nil {
				return err
			}
		}
		return nil
	}, err
}

// beginKicks is many connections that kick the same jobs at once.
func beginKicks(ctx context.Context, t *trial) (func(context.Context) error, error) {
	jobs := int(t.jobs(expensiveJobs))
	group, err := t.group(ctx, kickers, "kicked")
	if err != nil {
		return nil, err
	}
	return func(context.Context) error {
		return together(group, func(d *load.Dialog) error {
			_, err := d.Do(wire.AppendKick(nil, uint32(jobs)), wire.Kicked)
			return err
		})
	}, group[0].Repeat(jobs, wire.AppendPut(nil, 0, jobTTR, jobTTR, nil), wire.Inserted)
}

// beginResume ends a pause that has kept jobs from workers.
func beginResume(ctx context.Context, t *trial) (func(context.Context) error, error) {
	const tube = "paused"
	group, err := t.group(ctx, 1+pausedWorkers, tube)
	if err != nil {
		return nil, err
	}
	manager, workers := group[0], group[1:]
	if _, err := manager.Do(wire.AppendPauseTube(nil, tube, jobTTR), wire.Paused); err != nil {
		return nil, err
	}
	for _, d := range workers {
		if err := d.Send(wire.AppendReserve(nil)); err != nil {
			return nil, err
		}
	}
	return func(context.Context) error {
		if _, err := manager.Do(wire.AppendPauseTube(nil, tube, 0), wire.Paused); err != nil {
			return err
		}
		return together(workers, func(d *load.Dialog) error {
			_, err := d.Receive(wire.Reserved)
			return err
		})
	}, manager.Repeat(pausedWorkers, wire.AppendPut(nil, 0, 0, jobTTR, nil), wire.Inserted)
}

// beginClosing ends connections that hold many jobs each.
func beginClosing(ctx context.Context, t *trial) (func(context.Context) error, error) {
	jobs := int(t.jobs(expensiveJobs))
	group, err := t.group(ctx, holders, "held")
	if err != nil {
		return nil, err
	}
	if err := group[0].Repeat(jobs, wire.AppendPut(nil, 0, 0, jobTTR, nil), wire.Inserted); err != nil {
		return nil, err
	}
	for _, d := range group {
		if err := d.Repeat(jobs/holders, wire.AppendReserve(nil), wire.Reserved); err != nil {
			return nil, err
		}
	}
	return func(context.Context) error {
		return together(group, (*load.Dialog).Close)
	}, nil
}
