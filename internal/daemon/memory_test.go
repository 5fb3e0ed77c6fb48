package daemon

import (
	"testing"
	"testing/synctest"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// Freed memory is returned to the operating system, and this is not repeated while memory
// is in use.
func TestMemoryWorthCollecting(t *testing.T) {
	const mb = 1 << 20
	for _, test := range []struct {
		last, now memoryUse
		want      bool
	}{
		{memoryUse{}, memoryUse{unaccounted: 10 * mb}, false},
		{memoryUse{}, memoryUse{unaccounted: 40 * mb}, true},
		{memoryUse{unaccounted: 100 * mb}, memoryUse{unaccounted: 150 * mb}, false},
		{memoryUse{unaccounted: 100 * mb}, memoryUse{unaccounted: 160 * mb}, true},
		{memoryUse{100 * mb, 1000}, memoryUse{100 * mb, 800}, false},
		{memoryUse{100 * mb, 1000}, memoryUse{100 * mb, 700}, true},
		{memoryUse{10 * mb, 1000}, memoryUse{10 * mb, 0}, false},
	} {
		if got := test.now.worthCollecting(test.last); got != test.want {
			t.Errorf("%+v after %+v: %v", test.now, test.last, got)
		}
	}
}

// A hangingLog is a log whose syncs wait until the channel is closed.
type hangingLog chan struct{}

func (hangingLog) Append([]engine.Change) error { return nil }
func (hangingLog) Flush() (bool, error)         { return false, nil }
func (l hangingLog) Sync() error                { <-l; return nil }
func (hangingLog) Housekeep(int64) int64        { return engine.Never }
func (hangingLog) Close() error                 { return nil }

// The server measures its memory even while the disk hangs.
func TestMemoryNowWhileDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := make(hangingLog)
		q := &queue{broker: broker.New(engine.New(engine.Options{Logged: true}), broker.Options{Log: log})}
		if use := memoryNow(q); use.unaccounted == 0 {
			t.Error("no memory was measured")
		}
		close(log)
		if err := q.broker.Close(); err != nil {
			t.Error(err)
		}
	})
}
