package policy

import (
	"fmt"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// BenchmarkSet sets a policy for 100,000 tubes with a job each, beside 1000 others that were set: how long the call takes, and
// how many turns, and how long ones, the tubes are given it in.
func BenchmarkSet(b *testing.B) {
	const tubes = 100_000
	file, _ := New([]Config{{[]string{"*"}, map[string]any{"max-releases": "9"}}})
	e := engine.New(engine.Options{Policies: file})
	for n := range tubes {
		e.PutInto(0, fmt.Appendf(nil, "mail-%d", n), engine.Spec{TTR: 60}, nil)
	}
	for n := range engine.MaxPolicies - 1 {
		e.SetPolicy(fmt.Sprintf("other-%d*", n), "burst=2\n")
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
	for b.Loop() {
		begin := time.Now()
		if o := e.SetPolicy("mail-*", fmt.Sprintf("max-attempts=%d\nmax-reserved=9\nrate=100/s\n", 2+turns%7)); o != engine.OK {
			b.Fatal(o)
		}
		call = max(call, time.Since(begin))
		begin = time.Now()
		turns = settle()
		all += time.Since(begin)
	}
	b.ReportMetric(float64(call.Microseconds()), "µs/call-max")
	b.ReportMetric(float64(all.Microseconds())/float64(b.N*turns), "µs/turn")
	b.ReportMetric(float64(turns), "turns")
}
