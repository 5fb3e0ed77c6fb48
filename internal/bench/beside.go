package bench

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/beanpole-mq/beanpole/internal/load"
)

// A disturbance is what other clients do while the latency of some is measured.
type disturbance struct {
	name string

	// limit is for the p99 of the clients beside it. 0 means none.
	limit time.Duration

	// begin prepares what is not measured, and returns what disturbs. That ends by
	// itself, or when its context is done. That of begin is done later: then the
	// connections of the disturbance are closed.
	begin func(ctx context.Context, t *trial) (disturb func(context.Context) error, err error)
}

// pace makes a standstill of the server weigh as much in the percentiles as it lasts: it
// is about what a command takes without one. A closed loop would count it once for each
// client.
const pace = 100 * time.Microsecond

func (d *disturbance) clients() string { return " of clients beside " + d.name }

// besides is an experiment that measures clients alone, and then beside disturbances.
type besides struct {
	name, title  string
	prepare      func(context.Context, *trial) error // called first, unless it is nil
	pace         time.Duration                       // see load.Options
	disturbances []disturbance
}

func (b besides) experiment() Experiment {
	e := Experiment{Name: b.name, Title: b.title, trial: running(b.trial)}
	for _, d := range b.disturbances {
		if d.limit > 0 {
			e.goals = append(e.goals, goal{p99 + d.clients(), Target{Of: value, Limit: float64(d.limit)}})
		}
	}
	return e
}

func (b besides) trial(ctx context.Context, t *trial) error {
	if b.prepare != nil {
		if err := b.prepare(ctx, t); err != nil {
			return err
		}
	}
	clients := t.clients()
	clients.Pace = b.pace
	if err := t.measure(ctx, " of clients alone", clients); err != nil {
		return err
	}
	for i := range b.disturbances {
		if err := t.beside(ctx, &b.disturbances[i], clients); err != nil {
			return err
		}
	}
	return nil
}

// beside measures clients while they are disturbed.
func (t *trial) beside(ctx context.Context, d *disturbance, clients load.Options) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var r load.Result
	disturb, err := d.begin(ctx, t)
	if err == nil {
		err = during(ctx, disturb, func(ctx context.Context) (err error) {
			r, err = load.Run(ctx, clients)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	t.setClients(d.clients(), r) // not before the disturbance has set its figures
	return nil
}

// during runs work while another function disturbs. It ends the disturbance when the
// work is done. If the disturbance fails earlier, so does the work.
func during(ctx context.Context, disturb, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan error, 1)
	go func() {
		err := disturb(ctx)
		if err != nil {
			cancel(err)
		}
		ended <- err
	}()
	err := work(ctx)
	cancel(nil)
	return cmp.Or(<-ended, err)
}
