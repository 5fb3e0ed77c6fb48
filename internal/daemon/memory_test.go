package daemon

import (
	"testing"
	"testing/synctest"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// A hangingLog is a log whose syncs wait until the channel is closed.
type hangingLog chan struct{}

func (hangingLog) Append([]engine.Change) error { return nil }
func (hangingLog) Flush() (bool, error)         { return false, nil }
func (l hangingLog) Sync() error                { <-l; return nil }
func (hangingLog) Housekeep(int64) int64        { return engine.Never }
func (hangingLog) Close() error                 { return nil }

// The server measures its memory even while the disk hangs.
func TestMemoryWhileDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := make(hangingLog)
		q := &queue{broker: broker.New(engine.New(engine.Options{Logged: true}), broker.Options{Log: log})}
		if garbage(q, server.New(q.broker, server.Options{})) == 0 {
			t.Error("no memory was measured")
		}
		close(log)
		if err := q.broker.Close(); err != nil {
			t.Error(err)
		}
	})
}
