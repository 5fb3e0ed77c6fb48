package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Recorder collects latencies. The latencies in a batch of replies are often equal, so
// equal latencies are recorded together.
type Recorder struct {
	histogram *hdrhistogram.Histogram // in ns

	latency int64 // the last latency, in ns
	times   int64 // number of times that it occurred and is not in the histogram yet
}

// maxLatency is the largest recorded latency, in ns. Longer latencies count as
// maxLatency.
const maxLatency = int64(time.Minute)

// NewRecorder returns a recorder for latencies from 100 ns to a minute with three
// significant digits.
func NewRecorder() *Recorder {
	return &Recorder{histogram: hdrhistogram.New(100, maxLatency, 3)}
}

// Record adds a latency.
func (r *Recorder) Record(latency time.Duration) {
	ns := min(max(int64(latency), 0), maxLatency)
	if ns != r.latency {
		r.flush()
		r.latency = ns
	}
	r.times++
}

// flush records the collected latencies.
func (r *Recorder) flush() {
	if r.times == 0 {
		return
	}
	_ = r.histogram.RecordValues(r.latency, r.times) // within the histogram's range
	r.times = 0
}

// Latency returns the distribution of all recorded latencies.
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

// Latency is a distribution of the times from writing a command to reading its reply. The
// values have three significant digits.
type Latency struct {
	Count                    int64
	P50, P90, P99, P999, Max time.Duration
}
