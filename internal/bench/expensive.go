package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/internal/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// An expense is work that some clients cause with few commands. Its begin prepares what
// is not measured, and returns the function that causes the work; that ends, or goes on
// until ctx is done.
type expense struct {
	name  string
	begin func(ctx context.Context, t *trial) (spend func(ctx context.Context) error, err error)
	limit float64 // ns; for the p99 of others
}

var expenses = []expense{
	{"reserves from many tubes", beginReserves, 10e6},
	{"waits for many tubes", beginWaits, 10e6},
	{"many kicks", beginKicks, 20e6},
	{"the end of a pause", beginResume, 20e6},
	{"the end of connections with many jobs", beginClosing, 20e6},
}

const (
	expensiveTubes = 30_000
	expensiveJobs  = 500_000
	expensiveBatch = 100

	kickers       = 500
	pausedWorkers = 2_000
	holders       = 50
)

// expensive looks at clients beside others that ask much of the server.
func expensive(o *Options) Experiment {
	e := Experiment{
		Name: "expensive",
		Title: fmt.Sprintf("%d connections with one command in flight beside one that watches %s tubes, %d that kick and %d that hold %s jobs",
			interactiveClients, count(o.watched()), kickers, holders, count(o.jobs(expensiveJobs))),
		figures: clientFigures(clientsAlone),
		trial:   expensiveTrial,
	}
	for _, x := range expenses {
		e.figures = append(e.figures, clientFigures(besideExpense(x))...)
		e.addTargets([]goal{{p99 + besideExpense(x), Target{Of: value, Limit: x.limit}}})
	}
	return e
}

func besideExpense(x expense) string { return " of clients beside " + x.name }

// watched is how many tubes are watched by the client that watches many.
func (o *Options) watched() int { return cmp.Or(o.Tubes, expensiveTubes) }

func expensiveTrial(ctx context.Context, t *trial) error {
	clients := t.clients()
	clients.Pace = duePace // so that a standstill weighs as much as it lasts
	r, err := load.Run(ctx, clients)
	if err != nil {
		return err
	}
	t.setClients(clientsAlone, r)
	for _, x := range expenses {
		begun, end := context.WithCancel(ctx) // the end closes connections
		defer end()
		spend, err := x.begin(begun, t)
		if err == nil {
			err = beside(begun, spend, func(ctx context.Context) (err error) {
				r, err = load.Run(ctx, clients)
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		t.setClients(besideExpense(x), r)
		end()
	}
	return nil
}

// crew opens connections that use and watch one tube.
func (t *trial) crew(ctx context.Context, size int, tube string) ([]*load.Dialog, error) {
	crew := make([]*load.Dialog, size)
	out := wire.AppendUse(nil, tube)
	out = wire.AppendWatch(out, tube)
	out = wire.AppendIgnore(out, "default")
	for i := range crew {
		d, err := t.Dial(ctx)
		if err != nil {
			return nil, err
		}
		if err := d.Exchange(out, 3, nil, wire.Using, wire.Watching); err != nil {
			return nil, err
		}
		crew[i] = d
	}
	return crew, nil
}

// together does something with all connections at once.
func together(crew []*load.Dialog, do func(*load.Dialog) error) error {
	var g errgroup.Group
	for _, d := range crew {
		g.Go(func() error { return do(d) })
	}
	return g.Wait()
}

// repeat sends a command to be answered n times.
func repeat(d *load.Dialog, n int, command []byte, want wire.ReplyKind) error {
	for ; n > 0; n -= expensiveBatch {
		k := min(n, expensiveBatch)
		if err := d.Exchange(slices.Repeat(command, k), k, nil, want); err != nil {
			return err
		}
	}
	return nil
}

// watchMany opens a connection that watches many tubes, which no other one uses.
func (t *trial) watchMany(ctx context.Context) (*load.Dialog, error) {
	d, err := t.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return d, batches(t.watched(), func(first, size int) error {
		var out []byte
		for i := range size {
			out = wire.AppendWatch(out, tubeName(first+i))
		}
		return d.Exchange(out, size, nil, wire.Watching)
	})
}

// beginReserves is a client that asks for a job of very many tubes, which are
// empty, again and again.
func beginReserves(ctx context.Context, t *trial) (func(context.Context) error, error) {
	d, err := t.watchMany(ctx)
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := repeat(d, expensiveBatch, wire.AppendReserveTimeout(nil, 0), wire.TimedOut); err != nil {
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
	p, err := t.Dial(ctx)
	if err != nil {
		return nil, err
	}
	_, err = p.Do(wire.AppendUse(nil, tubeName(t.watched()/2)), wire.Using)
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := d.Send(wire.AppendReserve(nil)); err != nil {
				return err
			}
			if _, err := p.Do(wire.AppendPut(nil, 0, 0, jobTTR, nil), wire.Inserted); err != nil {
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
	crew, err := t.crew(ctx, kickers, "kicked")
	if err != nil {
		return nil, err
	}
	return func(context.Context) error {
		return together(crew, func(d *load.Dialog) error {
			_, err := d.Do(wire.AppendKick(nil, uint32(jobs)), wire.Kicked)
			return err
		})
	}, repeat(crew[0], jobs, wire.AppendPut(nil, 0, jobTTR, jobTTR, nil), wire.Inserted)
}

// beginResume ends a pause that has kept jobs from workers.
func beginResume(ctx context.Context, t *trial) (func(context.Context) error, error) {
	const tube = "paused"
	boss, err := t.crew(ctx, 1, tube)
	if err != nil {
		return nil, err
	}
	crew, err := t.crew(ctx, pausedWorkers, tube)
	if err != nil {
		return nil, err
	}
	if _, err := boss[0].Do(wire.AppendPauseTube(nil, tube, jobTTR), wire.Paused); err != nil {
		return nil, err
	}
	for _, d := range crew {
		if err := d.Send(wire.AppendReserve(nil)); err != nil {
			return nil, err
		}
	}
	return func(context.Context) error {
		if _, err := boss[0].Do(wire.AppendPauseTube(nil, tube, 0), wire.Paused); err != nil {
			return err
		}
		return together(crew, func(d *load.Dialog) error {
			_, err := d.Receive(wire.Reserved)
			return err
		})
	}, repeat(boss[0], pausedWorkers, wire.AppendPut(nil, 0, 0, jobTTR, nil), wire.Inserted)
}

// beginClosing ends connections that hold many jobs each.
func beginClosing(ctx context.Context, t *trial) (func(context.Context) error, error) {
	jobs := int(t.jobs(expensiveJobs))
	crew, err := t.crew(ctx, holders, "held")
	if err != nil {
		return nil, err
	}
	if err := repeat(crew[0], jobs, wire.AppendPut(nil, 0, 0, jobTTR, nil), wire.Inserted); err != nil {
		return nil, err
	}
	for _, d := range crew {
		if err := repeat(d, jobs/holders, wire.AppendReserve(nil), wire.Reserved); err != nil {
			return nil, err
		}
	}
	return func(context.Context) error {
		return together(crew, (*load.Dialog).Close)
	}, nil
}
