package scale

import (
	"fmt"
	"math"

	"github.com/beanpole-mq/beanpole/internal/load"
)

// A figure is something that an experiment measures: one value in each trial.
type figure struct {
	name   string
	unit   Unit
	target *Target
}

// A Unit says what a value counts.
type Unit string

const (
	Bytes       Unit = "bytes"
	Nanoseconds Unit = "ns"
	PerSecond   Unit = "1/s"
	Times       Unit = "times" // a quotient
	Number      Unit = "number"
)

// format prints a value for people.
func (u Unit) format(v float64) string {
	switch u {
	case Bytes:
		if v < 64<<10 {
			return fmt.Sprintf("%.0f bytes", v)
		}
		return fmt.Sprintf("%.1f MiB", v/(1<<20))
	case Nanoseconds:
		return duration(v)
	case PerSecond:
		return count(int64(math.Round(v))) + "/s"
	case Times:
		return fmt.Sprintf("%.2f times", v)
	}
	return count(int64(math.Round(v)))
}

// duration prints nanoseconds.
func duration(ns float64) string {
	switch {
	case ns >= 1e9:
		return threeDigits(ns/1e9) + " s"
	case ns >= 1e6:
		return threeDigits(ns/1e6) + " ms"
	}
	return threeDigits(ns/1e3) + " us"
}

func threeDigits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// count prints 1234567 as 1,234,567.
func count(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// comparable reports whether the ratio of two values says anything: a quotient
// is a ratio already, and of a number it is not known whether more is better.
func (u Unit) comparable() bool { return u != Times && u != Number }

// A Target is what a figure should not exceed: B's median, or the median of the
// ratios B/A.
type Target struct {
	AtMost  float64 `json:"at_most"`
	OfRatio bool    `json:"of_ratio"`
}

func atMost(v float64) *Target      { return &Target{AtMost: v} }
func ratioAtMost(v float64) *Target { return &Target{AtMost: v, OfRatio: true} }

// latencyFigures are what setLatency sets.
func latencyFigures(of string) []figure {
	return []figure{
		{name: "p50 of " + of, unit: Nanoseconds},
		{name: "p99 of " + of, unit: Nanoseconds},
		{name: "longest of " + of, unit: Nanoseconds},
	}
}

func (t *trial) setLatency(of string, l load.Latency) {
	t.setTime("p50 of "+of, l.P50)
	t.setTime("p99 of "+of, l.P99)
	t.setTime("longest of "+of, l.Max)
}

// clientFigures are what setClients sets.
func clientFigures(of string) []figure {
	return append(latencyFigures(of), figure{name: "throughput of " + of, unit: PerSecond})
}

func (t *trial) setClients(of string, r load.Result) {
	t.setLatency(of, r.Latency)
	t.set("throughput of "+of, r.Throughput)
}
