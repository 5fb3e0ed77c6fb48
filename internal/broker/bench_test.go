package broker

import (
	"fmt"
	"sync"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// nopLog takes everything and does nothing.
type nopLog struct{}

func (nopLog) Append([]engine.Change) error { return nil }
func (nopLog) Housekeep(int64) int64        { return engine.Never }
func (nopLog) Flush() (bool, error)         { return true, nil }
func (nopLog) Sync() error                  { return nil }
func (nopLog) Close() error                 { return nil }

// BenchmarkDo is the cost of a request that puts a job and deletes it.
func BenchmarkDo(b *testing.B) {
	body := make([]byte, 64)
	for _, log := range []Log{nil, nopLog{}} {
		for _, callers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("log=%t/callers=%d", log != nil, callers), func(b *testing.B) {
				b.ReportAllocs()
				br := newBroker(b, log)
				begin := make(chan struct{})
				var wg sync.WaitGroup
				for i := range callers {
					var s *engine.Session
					br.Call(func(e *engine.Engine, _ int64) { s = e.Open(nil) })
					c := br.NewCaller(&request{apply: func(e *engine.Engine, now int64) {
						id, _ := e.Put(now, s, engine.Spec{}, body)
						e.Delete(s, id)
					}})
					wg.Go(func() {
						<-begin
						for n := i; n < b.N; n += callers {
							c.Do()
						}
					})
				}
				b.ResetTimer()
				close(begin)
				wg.Wait()
			})
		}
	}
}
