package bench

import (
	"context"
	"fmt"

	"github.com/beanpole-mq/beanpole/bench/load"
)

const floodInFlight = 256

// fairness looks at clients that have one command in flight beside connections
// that keep hundreds.
func fairness() Experiment {
	return disturbed{
		name:         "fairness",
		title:        fmt.Sprintf("%d connections with one command in flight beside others with %d", interactiveClients, floodInFlight),
		disturbances: []disturbance{flood(1), flood(4)},
	}.experiment()
}

// flood is a load on some connections. It lasts as long as that of the clients.
func flood(connections int) disturbance {
	d := disturbance{name: "a flood from " + load.Plural(connections, "connection")}
	d.begin = func(begun context.Context, t *trial) (func(context.Context) error, error) {
		return func(context.Context) error {
			r, err := load.Run(begun, load.Options{
				Addr: t.Addr, Tube: "flood", Duration: t.Duration, Connections: connections, InFlight: floodInFlight,
			})
			t.set(throughput+" of "+d.name, load.PerSecond, r.Throughput)
			return err
		}, nil
	}
	return d
}
