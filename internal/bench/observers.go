package bench

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

// observers looks at a server with very many tubes while somebody asks for
// their list, or for the statistics, again and again.
func observers(o *Options) Experiment {
	e := Experiment{
		Name:    "observers",
		Title:   count(o.tubes(false)) + " tubes",
		figures: clientFigures(clientsAlone),
		trial:   observersTrial,
	}
	if n := o.tubes(true); n != o.tubes(false) {
		e.Title += fmt.Sprintf(" (%s: %s)", o.A.DisplayName(), count(n))
	}
	for _, c := range observerCommands {
		e.figures = append(e.figures, latencyFigures(" of "+c.name)...)
		e.figures = append(e.figures, clientFigures(" of clients beside "+c.name)...)
	}
	return e
}

func observersTrial(ctx context.Context, t *trial) error {
	n := t.tubes(t.isA)
	if err := t.makeTubes(ctx, n); err != nil {
		return err
	}
	r, err := t.interactive(ctx)
	if err != nil {
		return err
	}
	t.setClients(clientsAlone, r)
	for _, c := range observerCommands {
		var clients load.Result
		var seen load.Latency
		ask := func(ctx context.Context) (err error) {
			seen, err = t.askRepeatedly(ctx, c.command, func(data []byte) error { return c.check(data, n) })
			return err
		}
		work := func(ctx context.Context) (err error) {
			clients, err = t.interactive(ctx)
			return err
		}
		if err := beside(ctx, ask, work); err != nil {
			return err
		}
		t.setLatency(" of "+c.name, seen)
		t.setClients(" of clients beside "+c.name, clients)
	}
	return nil
}

// errWorkDone is the cause with which a disturbance is ended.
var errWorkDone = errors.New("the work is done")

// beside runs work while another function disturbs. It ends the disturbance when the
// work is done. If the disturbance fails earlier, so does the work.
func beside(ctx context.Context, disturb, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan error, 1)
	go func() {
		err := disturb(ctx)
		if err != nil {
			cancel(err) // too late if it was told to end
		}
		ended <- err
	}()
	err := work(ctx)
	cancel(errWorkDone)
	if failed := <-ended; failed != nil && !errors.Is(context.Cause(ctx), errWorkDone) {
		return failed
	}
	return err
}

// checkTubeList checks that a list names all tubes.
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

// tubes is the number of tubes on a server.
func (o *Options) tubes(ofA bool) int {
	if ofA {
		return cmp.Or(o.Tubes, 10_000)
	}
	return cmp.Or(o.Tubes, 100_000)
}

func tubeName(i int) string { return fmt.Sprintf("tube-%d", i) }

// makeTubes makes tubes last by a job in each.
func (t *trial) makeTubes(ctx context.Context, n int) error {
	d, err := t.Dial(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	return batches(n, func(from, size int) error {
		var out []byte
		for i := range size {
			out = wire.AppendUse(out, tubeName(from+i))
			out = wire.AppendPut(out, 0, 0, jobTTR, nil)
		}
		return d.Exchange(out, 2*size, nil, wire.Using, wire.Inserted)
	})
}

// askRepeatedly repeats a command back to back until ctx is done, which is no error, and
// returns how long the answers took. The first one is checked and not timed:
// the check takes long itself.
func (t *trial) askRepeatedly(ctx context.Context, command []byte, check func(data []byte) error) (load.Latency, error) {
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
		case errors.Is(context.Cause(ctx), errWorkDone):
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
