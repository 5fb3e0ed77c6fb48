package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Recorder takes latencies and sums them up. Those of one batch of replies are often
// all the same, so that equal ones are recorded together.
type Recorder struct {
	histogram *hdrhistogram.Histogram // ns

	latency int64 // that of the last ones, ns
	times   int64 // how often it was taken and is not in the histogram yet
}

// maxLatency is what longer ones are recorded as, in ns.
const maxLatency = int64(time.Minute)

// NewRecorder returns a recorder for 100 ns to a minute with three significant digits.
func NewRecorder() *Recorder {
	return &Recorder{histogram: hdrhistogram.New(100, maxLatency, 3)}
}

// Record takes a latency.
func (r *Recorder) Record(latency time.Duration) {
	ns := min(max(int64(latency), 0), maxLatency)
	if ns != r.latency {
		r.flush()
		r.latency = ns
	}
	r.times++
}

// flush records what was taken.
func (r *Recorder) flush() {
	if r.times == 0 {
		return
	}
	_ = r.histogram.RecordValues(r.latency, r.times) // it is within the histogram's range
	r.times = 0
}

// Latency is the distribution of the latencies so far.
func (r *Recorder) Latency() Latency {
	r.flush()
	h := r.histogram
	if h.TotalCount() == 0 {
		return Latency{}
	}
	at := func(percentile float64) time.Duration { return time.Duration(h.ValueAtPercentile(percentile)) }
	return Latency{
		Count: h.TotalCount(),
		P50:   at(50),
		P90:   at(90),
		P99:   at(99),
		P999:  at(99.9),
		Max:   time.Duration(h.Max()),
	}
}

// Latency is a distribution of times from a command's write to its reply's
// read.
// The values have three significant digits.
type Latency struct {
	Count                    int64
	P50, P90, P99, P999, Max time.Duration
}
