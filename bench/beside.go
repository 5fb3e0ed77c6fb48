package bench

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// A disturbance is what other clients do while the latency of some is measured.
type disturbance struct {
	name string

	// limit is for the p99 of the clients beside it. 0 means none.
	limit time.Duration

	// begin prepares the disturbance, while nothing is measured, and returns the
	// function that disturbs. That ends by itself or when its context is done. The
	// context of begin is done later; then its connections are closed.
	begin func(ctx context.Context, t *trial) (disturb func(context.Context) error, err error)
}

// pace makes a standstill of the server weigh as much in the percentiles as it lasts: it
// is about what a command takes without one. A closed loop would count it once for each
// client.
const pace = 100 * time.Microsecond

func (d *disturbance) clients() string { return " of clients beside " + d.name }

// ofClientsAlone are clients beside which nothing else happens.
const ofClientsAlone = " of clients alone"

// disturbed is an experiment that measures clients alone, and then beside each
// disturbance.
type disturbed struct {
	name, title  string
	prepare      func(context.Context, *trial) error // called first, unless it is nil
	pace         time.Duration                       // see load.Options
	disturbances []disturbance
}

func (e disturbed) experiment() Experiment {
	var goals []goal
	for _, d := range e.disturbances {
		if d.limit > 0 {
			goals = append(goals, goal{p99 + d.clients(), Target{Of: value, Limit: float64(d.limit)}})
		}
	}
	return Experiment{Name: e.name, Title: e.title, goals: goals, trial: running(e.trial)}
}

func (e disturbed) trial(ctx context.Context, t *trial) error {
	if e.prepare != nil {
		if err := e.prepare(ctx, t); err != nil {
			return err
		}
	}
	clients := t.clients()
	clients.Pace = e.pace
	if err := t.measure(ctx, ofClientsAlone, clients); err != nil {
		return err
	}
	for i := range e.disturbances {
		if err := t.beside(ctx, &e.disturbances[i], clients); err != nil {
			return err
		}
	}
	return nil
}

// beside measures clients while they are disturbed.
func (t *trial) beside(ctx context.Context, d *disturbance, clients load.Options) error {
	r, err := t.disturb(ctx, d, func(ctx context.Context) (load.Result, error) { return load.Run(ctx, clients) })
	if err != nil {
		return err
	}
	t.setClients(d.clients(), r) // not before the disturbance has set its figures
	return nil
}

// disturb measures clients while the server of the trial is disturbed.
func (t *trial) disturb(ctx context.Context, d *disturbance, clients func(context.Context) (load.Result, error)) (r load.Result, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	disturb, err := d.begin(ctx, t)
	if err == nil {
		err = during(ctx, disturb, func(ctx context.Context) (err error) {
			r, err = clients(ctx)
			return err
		})
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", d.name, err)
	}
	return r, nil
}

// during runs work and a disturbance at the same time. The end of the work ends the
// disturbance; a disturbance that fails earlier ends the work.
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
