package scale

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/internal/load"
)

// fairness looks at clients that have one command in flight beside connections
// that keep hundreds.
var fairness = experiment{
	name: "fairness",
	title: func(*Options) string {
		return fmt.Sprintf("%d connections with one command in flight beside others with %d", interactiveClients, floodInFlight)
	},
	figures: fairnessFigures(),
	trial: func(ctx context.Context, t *trial) error {
		r, err := t.interactive(ctx)
		if err != nil {
			return err
		}
		t.setClients("clients alone", r)
		for _, n := range floods {
			r, flood, err := t.besideFlood(ctx, n)
			if err != nil {
				return err
			}
			t.setClients("clients beside "+floodName(n), r)
			t.set("throughput of "+floodName(n), flood.Throughput)
		}
		return nil
	},
}

const floodInFlight = 256

// floods are the numbers of connections that flood.
var floods = []int{1, 4}

func floodName(connections int) string {
	if connections == 1 {
		return "a flood from 1 connection"
	}
	return fmt.Sprintf("a flood from %d connections", connections)
}

func fairnessFigures() []figure {
	all := clientFigures("clients alone")
	for _, n := range floods {
		all = append(all, clientFigures("clients beside "+floodName(n))...)
		all = append(all, figure{name: "throughput of " + floodName(n), unit: PerSecond})
	}
	return all
}

// besideFlood measures the clients and the flood at the same time.
func (t *trial) besideFlood(ctx context.Context, connections int) (clients, flood load.Result, err error) {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		flood, err = load.Run(ctx, load.Options{
			Addr: t.Addr, Prefix: "flood", Duration: t.Duration,
			Connections: connections, InFlight: floodInFlight,
		})
		return err
	})
	g.Go(func() (err error) {
		clients, err = t.interactive(ctx)
		return err
	})
	return clients, flood, g.Wait()
}
