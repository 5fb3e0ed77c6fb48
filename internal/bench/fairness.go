package bench

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/internal/load"
)

const floodInFlight = 256

// floods are the numbers of connections that flood.
var floods = []int{1, 4}

const clientsAlone = " of clients alone"

func flood(connections int) string { return "a flood from " + plural(connections, "connection") }

// fairness looks at clients that have one command in flight beside connections
// that keep hundreds.
func fairness(*Options) Experiment {
	e := Experiment{
		Name:    "fairness",
		Title:   fmt.Sprintf("%d connections with one command in flight beside others with %d", interactiveClients, floodInFlight),
		figures: clientFigures(clientsAlone),
		trial:   fairnessTrial,
	}
	for _, n := range floods {
		e.figures = append(e.figures, clientFigures(" of clients beside "+flood(n))...)
		e.figures = append(e.figures, Figure{Name: throughput + " of " + flood(n), Unit: PerSecond})
	}
	return e
}

func fairnessTrial(ctx context.Context, t *trial) error {
	r, err := t.interactive(ctx)
	if err != nil {
		return err
	}
	t.setClients(clientsAlone, r)
	for _, n := range floods {
		var clients, others load.Result
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() (err error) {
			others, err = load.Run(ctx, load.Options{
				Addr: t.Addr, Prefix: "flood", Duration: t.Duration, Connections: n, InFlight: floodInFlight,
			})
			return err
		})
		g.Go(func() (err error) {
			clients, err = t.interactive(ctx)
			return err
		})
		if err := g.Wait(); err != nil {
			return err
		}
		t.setClients(" of clients beside "+flood(n), clients)
		t.set(throughput+" of "+flood(n), others.Throughput)
	}
	return nil
}
