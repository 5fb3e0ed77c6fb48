package admin

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// BenchmarkMetrics is a scrape of a server with so many tubes, each with metrics.
func BenchmarkMetrics(b *testing.B) {
	for _, tubes := range []int{1, 1000, 10000} {
		b.Run(fmt.Sprintf("tubes=%d", tubes), func(b *testing.B) {
			q := broker.New(engine.New(engine.Options{}), broker.Options{})
			defer q.Close()
			q.Call(func(e *engine.Engine, now int64) {
				s := e.Open(nil)
				for i := range tubes - 1 {
					e.Use(s, fmt.Appendf(nil, "tube-%d", i))
					e.Put(now, s, engine.Spec{TTR: 60}, nil)
				}
			})
			h := New(q, Options{Tubes: tubes})
			r := httptest.NewRequest("GET", "/metrics", nil)
			b.ReportAllocs()
			bytes := 0
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				bytes = w.Body.Len()
			}
			b.ReportMetric(float64(bytes), "bytes")
		})
	}
}
