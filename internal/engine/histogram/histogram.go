// Package histogram counts values by magnitude. It is cheap enough to record a value for
// each job: recording finds the highest bit and makes two additions. A histogram is an
// array that can be copied; it allocates nothing.
//
// The size of buckets doubles, so a quantile is wrong by at most a factor of two, and
// usually by much less with Prometheus's interpolation. HdrHistogram is more precise; use
// it if its cost does not matter, as in bench/load.
package histogram

import (
	"math"
	"math/bits"
)

// Buckets is the number of buckets. Bucket 0 counts values up to 1, and bucket k those
// above 1<<(k-1) and up to 1<<k.
const Buckets = 64

// A Histogram counts values from 0 to the largest int64, such as nanoseconds. The zero
// value is empty. It is not safe for concurrent use.
type Histogram struct {
	// Counts contains the number of values by bucket.
	Counts [Buckets]uint64

	// Sum is the sum of all values. It is a float64 because an int64 could overflow: in
	// nanoseconds, a million waits of a day exceed it.
	Sum float64
}

// Record counts a value. Negative values count as 0.
func (h *Histogram) Record(v int64) {
	v = max(v, 0)
	h.Counts[bits.Len64(uint64(v-1))%Buckets]++ // for -1 it is 64
	h.Sum += float64(v)
}

// Count returns the number of recorded values.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Since returns the values recorded after before, an earlier copy of h. If before is a
// copy of another histogram, Since returns h.
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

// Quantile returns the q-quantile of the values, interpolated within its bucket. It
// returns 0 for an empty histogram.
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
