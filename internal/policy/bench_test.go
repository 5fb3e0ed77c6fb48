package policy

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// BenchmarkSet sets a policy for all tubes while 999 other patterns are set. It reports
// the longest call, and the number and mean duration of the turns in which tubes get the
// policy.
func BenchmarkSet(b *testing.B) {
	b.Run("prefixes", func(b *testing.B) { benchmarkSet(b, 100_000, "mail-%d", "other-%d*") })
	b.Run("stars", func(b *testing.B) {
		benchmarkSet(b, 1000, strings.Repeat("a", 190)+"%d", strings.Repeat("*a", 40)+"*%d*b")
	})
}

func benchmarkSet(b *testing.B, tubes int, tube, other string) {
	file, _ := New([]Config{{[]string{"*"}, map[string]any{"max-releases": "9"}}})
	e := engine.New(engine.Options{Policies: file})
	for n := range tubes {
		e.PutInto(0, fmt.Appendf(nil, tube, n), engine.Spec{TTR: 60}, nil)
	}
	for n := range engine.MaxPolicies - 1 {
		e.SetPolicy(fmt.Sprintf(other, n), "burst=2\n")
	}
	now := int64(0)
	settle := func() (turns int) {
		for now++; e.Next() <= now; now++ {
			e.Tick(now)
			turns++
		}
		return turns
	}
	settle()
	var call, all time.Duration
	turns := 0
	for n := 0; b.Loop(); n++ {
		begin := time.Now()
		if o := e.SetPolicy("*", fmt.Sprintf("max-attempts=%d\nmax-reserved=9\nrate=100/s\n", 2+n%7)); o != engine.OK {
			b.Fatal(o)
		}
		call = max(call, time.Since(begin))
		begin = time.Now()
		turns += settle()
		all += time.Since(begin)
	}
	b.ReportMetric(float64(call.Microseconds()), "µs/call-max")
	b.ReportMetric(float64(all.Microseconds())/float64(turns), "µs/turn")
	b.ReportMetric(float64(turns)/float64(b.N), "turns")
}

// BenchmarkUnique puts, reserves and deletes Laravel jobs in a tube with a million other
// jobs, with and without unique jobs.
func BenchmarkUnique(b *testing.B) {
	const jobs = 1_000_000
	for _, unique := range []string{"no", "body", "/data/commandName, /data/command"} {
		b.Run(unique, func(b *testing.B) {
			set, _ := New([]Config{{[]string{"*"}, map[string]any{"unique": unique}}})
			e := engine.New(engine.Options{Policies: set})
			s := e.Open(nil)
			n := 0
			body := func() []byte {
				n++
				return []byte(strings.Replace(strings.ReplaceAll(laravel, "%", fmt.Sprintf("%036d", n)), "i:7;", fmt.Sprintf("i:%d;", n), 1))
			}
			for range jobs {
				if _, o := e.Put(0, s, engine.Spec{Pri: 1}, body()); o != engine.OK {
					b.Fatal(o)
				}
			}
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			bodies := make([][]byte, 1000)
			for k := range bodies {
				bodies[k] = body()
			}
			for k := 0; b.Loop(); k++ {
				e.Put(0, s, engine.Spec{}, bodies[k%len(bodies)])
				if j, _ := e.Reserve(0, s, 0); e.Delete(s, j.ID) != engine.OK {
					b.Fatal("no job")
				}
			}
			b.ReportMetric(float64(m.HeapAlloc)/jobs, "heap-bytes/job")
		})
	}
}

// BenchmarkKey computes the key of a Laravel job with 303 bytes.
func BenchmarkKey(b *testing.B) {
	uuid, class := fmt.Sprintf("%036d", 7), `App\\Jobs\\ChargeTheCustomerOfOrder`
	body := []byte(strings.NewReplacer("%", uuid, `App\\Jobs\\Charge`, class).Replace(laravel))
	for _, unique := range []string{"body", "line", "/data/commandName, /data/command"} {
		b.Run(unique, func(b *testing.B) {
			key, _ := keyOf(unique)
			var buf []byte
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := key.Of(&buf, body); !ok {
					b.Fatal("no key")
				}
			}
		})
	}
}
