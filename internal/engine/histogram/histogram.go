// Package histogram counts how large values are, so cheaply that the hot path can
// do it for each job: to record a value is to find its highest bit and to add
// twice. A histogram is an array; it allocates nothing and can be copied.
//
// The buckets double in size, so a quantile taken from them is wrong by a factor of
// two at most, and by far less with the interpolation of Prometheus. Where more
// precision is wanted and the cost does not matter, as in bench/load, HdrHistogram
// is the better choice.
package histogram

import (
	"math"
	"math/bits"
	"sync"
)

// Buckets is how many there are. Bucket 0 counts values up to 1, and bucket k those
// above 1<<(k-1) and up to 1<<k.
const Buckets = 64

// A Histogram is of values from 0 to the largest int64, such as nanoseconds. The zero value
// is empty. It is not safe for concurrent use.
type Histogram struct {
	// Counts has the number of values by bucket.
	Counts [Buckets]uint64

	// Sum is that of all values. It is a float so that it never overflows: a million
	// jobs that have waited for a day each are more nanoseconds than an int64 has.
	Sum float64
}

// Record counts a value. Negative ones count as 0.
func (h *Histogram) Record(v int64) {
	v = max(v, 0)
	h.Counts[bits.Len64(uint64(v-1))%Buckets]++ // of -1 it is 64
	h.Sum += float64(v)
}

// Count returns how many values were recorded.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Since returns the values recorded after before, an earlier copy of h. If before is of
// another histogram, it returns h.
func (h *Histogram) Since(before *Histogram) Histogram {
	d := *h
	for k, n := range before.Counts {
		if n > d.Counts[k] {
			return *h
		}
		d.Counts[k] -= n
	}
	d.Sum -= before.Sum
	return d
}

// Quantile returns the value below which a part q of the values lies, interpolated within
// its bucket. It returns 0 for an empty histogram.
func (h *Histogram) Quantile(q float64) float64 {
	below, rank := 0.0, q*float64(h.Count())
	for k, n := range h.Counts {
		if n > 0 && below+float64(n) >= rank {
			return Limit(k-1) + (Limit(k)-Limit(k-1))*max(0, rank-below)/float64(n)
		}
		below += float64(n)
	}
	return 0
}

// Limit returns the largest value that bucket k counts: 2 to the power of k.
func Limit(k int) float64 { return math.Ldexp(1, k) }

// Shared is a histogram that any goroutine may record into. The zero value is
// empty.
type Shared struct {
	mu sync.Mutex
	h  Histogram
}

// Record counts a value.
func (s *Shared) Record(v int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.h.Record(v)
}

// Snapshot returns the histogram as it is.
func (s *Shared) Snapshot() Histogram {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.h
}
