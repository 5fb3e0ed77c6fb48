package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A tally counts the replies of a session and times them. Latencies of one batch
// are often all the same, so that they are recorded as a run.
type tally struct {
	hist     *hdrhistogram.Histogram // ns; shared by the sessions of one loop
	commands int64                   // replies received while measuring
	last     int64                   // when the last of them came, ns
	latency  int64                   // the run: this latency ...
	times    int64                   // ... so many times
	pace     int64                   // see Options.Pace, ns

	byOp map[wire.Op]*hdrhistogram.Histogram // nil unless asked for
}

// maxLatency is what longer ones are recorded as, in ns.
const maxLatency = int64(time.Minute)

// newHistogram covers 64 ns to a minute with three significant digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(100, maxLatency, 3)
}

func (t *tally) record(op wire.Op, latency int64) {
	latency = min(max(latency, 0), maxLatency)
	if latency != t.latency {
		t.flush()
		t.latency = latency
	}
	t.times++
	if t.byOp == nil {
		return
	}
	h := t.byOp[op]
	if h == nil {
		h = newHistogram()
		t.byOp[op] = h
	}
	_ = h.RecordValue(latency) // it is within the histogram's range
}

// flush records the run and, with a pace, the commands that would have been sent
// while the client waited for the last ones.
func (t *tally) flush() {
	if t.times == 0 {
		return
	}
	_ = t.hist.RecordValues(t.latency, t.times)
	if t.pace > 0 {
		for rest := t.latency - t.pace; rest >= t.pace; rest -= t.pace {
			_ = t.hist.RecordValues(rest, t.times)
		}
	}
	t.times = 0
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	if h.TotalCount() == 0 {
		return Latency{}
	}
	at := func(percentile float64) time.Duration { return time.Duration(h.ValueAtPercentile(percentile)) }
	return Latency{
		Count: h.TotalCount(),
		Mean:  time.Duration(h.Mean()),
		P50:   at(50),
		P90:   at(90),
		P99:   at(99),
		P999:  at(99.9),
		Max:   time.Duration(h.Max()),
	}
}
