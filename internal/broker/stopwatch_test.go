package broker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A slowLog advances the test's clock.
type slowLog struct{ now *int64 }

func (l slowLog) Append([]engine.Change) error { return nil }
func (l slowLog) Sync() error                  { return nil }

func (l slowLog) Close() error {
	*l.now += 50e6
	return nil
}

func (l slowLog) Flush() (durable bool, err error) {
	*l.now += 5e6
	return true, nil
}

func (l slowLog) Housekeep(int64) (next int64) {
	*l.now += 7e6
	return engine.Never
}

// The broker counts each turn, and reports slow turns with the time of each phase.
func TestTurns(t *testing.T) {
	for _, c := range []struct {
		name string
		log  func(now *int64) Log
		want []Turn
	}{
		{"in memory", func(*int64) Log { return nil }, []Turn{
			{Took: 20e6, Requests: 1, Commands: 9, Executing: 20e6},
		}},
		{"with a log", func(now *int64) Log { return slowLog{now} }, []Turn{
			{Took: 14e6, Requests: 1, Commands: 3, Executing: 2e6, Writing: 5e6, Housekeeping: 7e6},
			{Took: 32e6, Requests: 1, Commands: 9, Executing: 20e6, Writing: 5e6, Housekeeping: 7e6},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := int64(0)
			var slow []Turn
			b := New(engine.New(engine.Options{}), Options{
				Now: func() int64 { return now }, Log: c.log(&now),
				SlowTurn: func(s Turn) { slow = append(slow, s) }, SlowAfter: 14 * time.Millisecond,
			})
			for _, r := range []timedRequest{{&now, 3, 2e6}, {&now, 9, 20e6}} {
				if err := b.NewCaller(r).Do(); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(c.want, slow); diff != "" {
				t.Errorf("slow turns (-want +got):\n%s", diff)
			}
			if n, sum := b.turns.Commands.Count(), b.turns.Commands.Sum; n != 2 || sum != 12 {
				t.Errorf("%d turns with %g commands, want 2 with 12", n, sum)
			}
			if n, sum := b.turns.Length.Count(), b.turns.Length.Sum; n != 2 || sum != float64(now) {
				t.Errorf("%d turns took %g ns, want 2 and %d", n, sum, now)
			}
			if err := b.Close(); err != nil || len(slow) != len(c.want) {
				t.Errorf("Close: %v, and it is reported as a slow turn: %+v", err, slow[len(c.want):])
			}
		})
	}
}

// A timedRequest has some commands, which advance the test's clock.
type timedRequest struct {
	now      *int64
	commands int64
	takes    int64
}

func (r timedRequest) Apply(_ *engine.Engine, now int64) (later int64) {
	*r.now += r.takes
	return now + r.commands - 1
}
