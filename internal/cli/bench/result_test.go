package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/cli/bench/load"
)

func TestWriteResult(t *testing.T) {
	r := load.Result{
		Options: load.Options{Connections: 2, Idle: 3}, Commands: 3000, Elapsed: time.Second, Throughput: 3000,
		Latency:      load.Latency{P50: time.Millisecond, P90: 2 * time.Millisecond, P99: 3 * time.Millisecond, P999: 4 * time.Millisecond, Max: 5 * time.Millisecond},
		GeneratorCPU: time.Second / 2,
		Server:       &load.ServerUsage{CPU: time.Second / 4, CPUPerCommand: 83 * time.Microsecond, RSS: 3 << 20, PeakRSS: 4 << 20},
		Crowd:        &load.CrowdUsage{Members: 3, RSSBefore: 1 << 20, RSSWith: 2 << 20, RSSEach: 512},
	}
	var b strings.Builder
	if err := writeResult(&b, r); err != nil {
		t.Fatal(err)
	}
	const want = `put-reserve-delete, 2 connections, 1 in flight, 64-byte bodies, beside 3 idle connections
  throughput  3,000 commands/s (3000 in 1s)
  latency     p50 1.00 ms  p90 2.00 ms  p99 3.00 ms  p99.9 4.00 ms  max 5.00 ms
  server      83.0 us CPU per command, 25% of a core, RSS 3.0 MiB, peak 4.0 MiB
  crowd       RSS 1.0 MiB before it came, 2.0 MiB with it: 512 bytes each
  generator   50% of a core
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
