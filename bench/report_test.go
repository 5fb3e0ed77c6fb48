package bench

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// loadReport is that of a load, with figures chosen for their looks: three rounds
// of two servers, and of a responder.
func loadReport(name string) Report {
	r := Report{
		Name: name, Servers: [numSides]string{"old", "new", "responder"}, rounds: 3,
	}
	add := func(side, round int, rate, p50us, p99us, cpu float64) {
		r.add(side, round, []measurement{
			{throughput, load.PerSecond, rate}, {cpuPerCommand, load.Nanoseconds, cpu * 1e3},
			{p50, load.Nanoseconds, p50us * 1e3}, {p99, load.Nanoseconds, p99us * 1e3}, {p999, load.Nanoseconds, 2 * p99us * 1e3},
			{peakRSS, load.Bytes, 3 << 19},
		})
	}
	add(sideA, 0, 100_000, 100, 12_000, 8)
	add(sideA, 1, 110_000, 110, 12_000, 8)
	add(sideA, 2, 90_000, 90, 12_000, 8)
	add(sideB, 0, 200_000, 50, 3_000, 4)
	add(sideB, 1, 330_000, 55, 3_000, 4)
	add(sideB, 2, 90_000, 90, 12_000, 8)
	add(sideResponder, 0, 400_000, 25, 1_000, 2)
	add(sideResponder, 1, 330_000, 25, 1_000, 4)
	add(sideResponder, 2, 100_000, 25, 1_000, 8)
	r.sum()
	return r
}

// report is one of an experiment.
func report() Report {
	r := Report{Name: "looks", Title: "how it looks", Servers: [numSides]string{"old", "new"}, rounds: 2}
	add := func(side, round int, rss, p99, slower, rate float64) {
		r.add(side, round, []measurement{
			{"RSS", load.Bytes, rss}, {"p99", load.Nanoseconds, p99}, {"slower", load.Times, slower},
			{"throughput", load.PerSecond, rate}, {"pause", load.Nanoseconds, math.NaN()},
		})
	}
	add(sideA, 0, 2<<20, 1e6, 1, 1234567)
	add(sideB, 0, 1<<20, 30e6, 1.5, 0)
	add(sideA, 1, 2<<20, 2e6, 1, 0)
	add(sideB, 1, 1<<20, 40e6, 2, 5)
	r.LeftOut[sideA] = "it was asleep"
	r.sum()
	return r
}

func TestWriteMarkdown(t *testing.T) {
	alone := loadReport("alone")
	alone.Servers[sideResponder] = ""
	for _, tt := range []struct {
		reports []Report
		want    string
	}{
		{[]Report{loadReport("50 connections"), report(), loadReport("8 connections")}, `| load | old, throughput | new | ratio | to the responder | old, CPU per command | new | ratio | to the responder |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
| 50 connections | 100,000/s | 200,000/s | 2.00 (1.00..3.00) | 0.90 (0.50..1.00) | 8.00 us | 4.00 us | 0.50 (0.50..1.00) | 1.00 (1.00..2.00) |
| 8 connections | 100,000/s | 200,000/s | 2.00 (1.00..3.00) | 0.90 (0.50..1.00) | 8.00 us | 4.00 us | 0.50 (0.50..1.00) | 1.00 (1.00..2.00) |

| load | old, p50 | new | ratio | old, p99 | new | ratio | old, p99.9 | new | ratio | old, peak RSS | new | ratio |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
| 50 connections | 100 us | 55.0 us | 0.50 (0.50..1.00) | 12.0 ms | 3.00 ms | 0.25 (0.25..1.00) | 24.0 ms | 6.00 ms | 0.25 (0.25..1.00) | 1.5 MiB | 1.5 MiB | 1.00 |
| 8 connections | 100 us | 55.0 us | 0.50 (0.50..1.00) | 12.0 ms | 3.00 ms | 0.25 (0.25..1.00) | 24.0 ms | 6.00 ms | 0.25 (0.25..1.00) | 1.5 MiB | 1.5 MiB | 1.00 |

### looks: how it looks

| median (min..max) | old | new | ratio |
|---|---:|---:|---:|
| RSS | 2.0 MiB | 1.0 MiB | 0.50 |
| p99 | 1.50 ms (1.00 ms..2.00 ms) | 35.0 ms (30.0 ms..40.0 ms) | 25.0 (20.0..30.0) |
| slower | 1.00 times | 1.75 times (1.50 times..2.00 times) | - |
| throughput | 617,284/s (0/s..1,234,567/s) | 3/s (0/s..5/s) | 0.000 |
| pause | - | - | - |

looks: old was left out: it was asleep
`},
		{[]Report{alone}, `| load | old, throughput | new | ratio | old, CPU per command | new | ratio |
|---|---:|---:|---:|---:|---:|---:|
| alone | 100,000/s | 200,000/s | 2.00 (1.00..3.00) | 8.00 us | 4.00 us | 0.50 (0.50..1.00) |
`},
	} {
		var b bytes.Buffer
		if err := WriteMarkdown(&b, tt.reports); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.HasPrefix(got, tt.want) || len(tt.reports) > 1 && got != tt.want {
			t.Errorf("got\n%s\nwant\n%s", got, tt.want)
		}
	}
}
