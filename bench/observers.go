package bench

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// observers looks at a server with very many tubes while somebody asks for
// their list, or for the statistics, again and again.
func observers(o *Options) Experiment {
	title := load.Count(o.tubes(false)) + " tubes"
	if n := o.tubes(true); n != o.tubes(false) {
		title += fmt.Sprintf(" (%s: %s)", o.A.DisplayName(), load.Count(n))
	}
	return disturbed{
		name:    "observers",
		title:   title,
		prepare: makeTubes,
		disturbances: []disturbance{
			observer("list-tubes", wire.AppendListTubes(nil), countListed),
			observer("stats", wire.AppendStatsCommand(nil), countTubes),
		},
	}.experiment()
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
func makeTubes(ctx context.Context, t *trial) error {
	d, err := t.dial(ctx)
	if err != nil {
		return err
	}
	return d.Pipeline(2*t.tubes(t.isA), func(out []byte, i int) []byte {
		if i%2 == 0 {
			return wire.AppendUse(out, tubeName(i/2))
		}
		return wire.AppendPut(out, 0, 0, jobTTR, nil)
	}, nil, wire.Using, wire.Inserted)
}

// observer repeats a command back to back. The first reply is checked and not timed: it
// has to tell of all tubes.
func observer(name string, command []byte, tubesIn func(data []byte) (int, error)) disturbance {
	return disturbance{name: name, begin: func(ctx context.Context, t *trial) (func(context.Context) error, error) {
		d, err := t.dial(ctx)
		if err != nil {
			return nil, err
		}
		r, err := d.Do(command, wire.OK)
		if err != nil {
			return nil, err
		}
		switch n, err := tubesIn(r.Body); {
		case err != nil:
			return nil, err
		case n < t.tubes(t.isA):
			return nil, fmt.Errorf("the reply tells of %d tubes where %d were made", n, t.tubes(t.isA))
		}
		return func(ctx context.Context) error {
			took := load.NewRecorder(0)
			for ctx.Err() == nil {
				sent := time.Now()
				if _, err := d.Do(command, wire.OK); err != nil {
					return err
				}
				took.Record(time.Since(sent))
			}
			t.setLatency(" of "+name, took.Latency())
			return nil
		}, nil
	}}
}

// countListed returns how many tubes a list names.
func countListed(data []byte) (int, error) {
	names, err := wire.ParseList(data)
	return len(names), err
}

// countTubes returns how many tubes the statistics of a server tell of.
func countTubes(data []byte) (int, error) {
	stats, err := wire.ParseDict(data)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(stats["current-tubes"])
}
