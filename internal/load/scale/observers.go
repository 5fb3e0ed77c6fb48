package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/beanpole-mq/beanpole/internal/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// observers looks at a server with very many tubes while somebody asks for
// their list, or for the statistics, again and again.
var observers = experiment{
	name: "observers",
	title: func(o *Options) string {
		a, b := o.tubes(true), o.tubes(false)
		if a == b {
			return fmt.Sprintf("%s tubes", count(int64(b)))
		}
		return fmt.Sprintf("%s tubes (%s: %s)", count(int64(b)), o.A.DisplayName(), count(int64(a)))
	},
	figures: observersFigures(),
	trial: func(ctx context.Context, t *trial) error {
		n := t.tubes(t.isA)
		if err := t.makeTubes(ctx, n); err != nil {
			return err
		}
		r, err := t.interactive(ctx)
		if err != nil {
			return err
		}
		t.setClients("clients alone", r)
		for _, o := range observerCommands {
			var seen load.Latency
			ask := func(ctx context.Context) (err error) {
				seen, err = t.ask(ctx, o.command, func(data []byte) error { return o.check(data, n) })
				return err
			}
			answer := func(ctx context.Context) (err error) {
				r, err = t.interactive(ctx)
				return err
			}
			if err := beside(ctx, ask, answer); err != nil {
				return err
			}
			t.setLatency(o.name, seen)
			t.setClients("clients beside "+o.name, r)
		}
		return nil
	},
}

// observerCommands are those that are asked. Check is given the data of a reply
// and the number of tubes that were made.
var observerCommands = []struct {
	name    string
	command []byte
	check   func(data []byte, tubes int) error
}{
	{"list-tubes", wire.AppendListTubes(nil), checkTubeList},
	{"stats", wire.AppendStatsCommand(nil), checkStats},
}

func checkTubeList(data []byte, tubes int) error {
	names, err := wire.ParseList(data)
	if err != nil {
		return err
	}
	listed := make(map[string]bool, len(names))
	for _, name := range names {
		listed[name] = true
	}
	for i := range tubes {
		if !listed[tubeName(i)] {
			return fmt.Errorf("tube %q is not in the list of %d names", tubeName(i), len(names))
		}
	}
	return nil
}

func checkStats(data []byte, tubes int) error {
	stats, err := wire.ParseDict(data)
	if err != nil {
		return err
	}
	const key = "current-tubes"
	if n, err := strconv.Atoi(stats[key]); err != nil || n < tubes {
		return fmt.Errorf("%s is %q where %d were made", key, stats[key], tubes)
	}
	return nil
}

func observersFigures() []figure {
	all := clientFigures("clients alone")
	for _, o := range observerCommands {
		all = append(all, latencyFigures(o.name)...)
		all = append(all, clientFigures("clients beside "+o.name)...)
	}
	return all
}

// tubes is the number of tubes on a server.
func (o *Options) tubes(ofA bool) int {
	if ofA {
		return cmp.Or(o.Tubes, 10_000)
	}
	return cmp.Or(o.Tubes, 100_000)
}

func tubeName(i int) string { return fmt.Sprintf("tube-%d", i) }

// makeTubes makes tubes last by a job in each.
func (t *trial) makeTubes(ctx context.Context, tubes int) error {
	d, err := t.Dial(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	const batch = 100
	var out []byte
	for i := 0; i < tubes; i += batch {
		n := min(batch, tubes-i)
		out = out[:0]
		for k := range n {
			out = wire.AppendUse(out, tubeName(i+k))
			out = wire.AppendPut(out, 0, 0, jobTTR, nil)
		}
		if err := d.Send(out); err != nil {
			return err
		}
		for range 2 * n {
			if _, err := d.Receive(wire.Using, wire.Inserted); err != nil {
				return fmt.Errorf("make %d tubes: %w", tubes, err)
			}
		}
	}
	return nil
}

// ask repeats a command back to back until ctx is done, which is no error, and
// returns how long the answers took. The first one is checked and not timed:
// the check takes long itself.
func (t *trial) ask(ctx context.Context, command []byte, check func(data []byte) error) (load.Latency, error) {
	d, err := t.Dial(ctx)
	if err != nil {
		return load.Latency{}, err
	}
	defer d.Close()
	r, err := d.Do(command, wire.OK)
	if err != nil {
		return load.Latency{}, err
	}
	if err := check(r.Body); err != nil {
		return load.Latency{}, err
	}
	var took []time.Duration
	for {
		sent := time.Now()
		_, err := d.Do(command, wire.OK)
		switch {
		case errors.Is(context.Cause(ctx), errEnough):
			return latencyOf(took), nil
		case err != nil:
			return load.Latency{}, err
		}
		took = append(took, time.Since(sent))
	}
}

// latencyOf sums up latencies that were measured one by one.
func latencyOf(took []time.Duration) load.Latency {
	n := len(took)
	if n == 0 {
		return load.Latency{}
	}
	slices.Sort(took)
	at := func(quantile float64) time.Duration { return took[min(int(quantile*float64(n)), n-1)] }
	return load.Latency{Count: int64(n), P50: at(0.5), P90: at(0.9), P99: at(0.99), P999: at(0.999), Max: took[n-1]}
}
