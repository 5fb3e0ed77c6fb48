package console

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// BenchmarkPage renders pages of a server with 10,000 tubes and 1,000,000 jobs. p50-ms
// and p99-ms are percentiles of the elapsed time. cpu-ms is the CPU time, which does not
// depend on the load of the machine. kB is the compressed size of a page.
func BenchmarkPage(b *testing.B) {
	r := start(b, nil, Options{})
	r.fillTenants()
	for _, one := range []struct{ name, path string }{
		{"overview", ""}, {"tubes", "tubes"}, {"problems", "tubes?sort=-attention"}, {"tube", "tube/tenant-7"}, {"job", "job/77"}, {"server", "server"},
	} {
		b.Run(one.name, func(b *testing.B) {
			var took []time.Duration
			size, used := 0, processor()
			for b.Loop() {
				h := httptest.NewRequest("GET", "/console/"+one.path, nil)
				h.Header.Set("Accept-Encoding", "gzip")
				w := httptest.NewRecorder()
				began := time.Now()
				r.ServeHTTP(w, h)
				took = append(took, time.Since(began))
				size = w.Body.Len()
			}
			b.ReportMetric(float64((processor()-used).Microseconds())/1000/float64(len(took)), "cpu-ms")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(size)/1000, "kB")
		})
	}
}

// fillTenants puts a million jobs into 10,000 tubes.
func (r *rig) fillTenants() {
	r.in(func(e *engine.Engine, now int64) {
		body := []byte(`{"job":"App\\Jobs\\Send","to":"somebody@example.com"}`)
		for i := range 1_000_000 {
			e.PutInto(now, fmt.Appendf(nil, "tenant-%d", i%10_000), engine.Spec{Pri: uint32(i % 7), TTR: 60}, body)
		}
	})
}

func processor() time.Duration {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkLive computes the live values of a page of the same server. A server does this
// once a second for each viewed page.
func BenchmarkLive(b *testing.B) {
	r := start(b, nil, Options{})
	r.fillTenants()
	for _, path := range []string{"", "tubes", "tube/tenant-7", "server"} {
		b.Run("/"+path, func(b *testing.B) {
			used, n := processor(), 0
			for ; b.Loop(); n++ {
				if _, err := r.live.values(r.viewOf("/console/" + path)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processor()-used).Microseconds())/1000/float64(n), "cpu-ms")
		})
	}
}
