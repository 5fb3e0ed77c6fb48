package bench

import (
	"fmt"
	"io"
	"time"

	"github.com/beanpole-mq/beanpole/internal/cli/bench/load"
)

// writeResult writes a report of one run of a load, of a few lines, for people.
func writeResult(w io.Writer, r load.Result) error {
	ns := func(d time.Duration) string { return load.Nanoseconds.Format(float64(d)) }
	size := func(n int64) string { return load.Bytes.Format(float64(n)) }
	share := func(cpu time.Duration) float64 { return 100 * cpu.Seconds() / max(r.Elapsed.Seconds(), 1e-9) }
	l := &r.Latency
	s := r.Options.Describe() + "\n" +
		fmt.Sprintf("  throughput  %s commands/s (%d in %v)\n", load.Count(r.Throughput), r.Commands, r.Elapsed.Round(time.Millisecond)) +
		fmt.Sprintf("  latency     p50 %s  p90 %s  p99 %s  p99.9 %s  max %s\n", ns(l.P50), ns(l.P90), ns(l.P99), ns(l.P999), ns(l.Max))
	if u := r.Server; u != nil {
		s += fmt.Sprintf("  server      %s CPU per command, %.0f%% of a core, RSS %s, peak %s\n",
			ns(u.CPUPerCommand), share(u.CPU), size(u.RSS), size(u.PeakRSS))
	}
	if c := r.Crowd; c != nil {
		s += fmt.Sprintf("  crowd       RSS %s before it came, %s with it: %s each\n",
			size(c.RSSBefore), size(c.RSSWith), load.Bytes.Format(c.RSSEach))
	}
	s += fmt.Sprintf("  generator   %.0f%% of a core\n", share(r.GeneratorCPU))
	_, err := io.WriteString(w, s)
	return err
}
