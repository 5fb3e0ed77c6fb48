package histogram

import (
	"math"
	"testing"
)

// A value is in the first bucket whose limit it does not exceed.
func TestBuckets(t *testing.T) {
	for _, c := range []struct {
		v      int64
		bucket int
	}{
		{math.MinInt64, 0}, {-1, 0}, {0, 0}, {1, 0}, {2, 1}, {3, 2}, {4, 2}, {5, 3}, {8, 3}, {9, 4},
		{1024, 10}, {1025, 11}, {1 << 62, 62}, {1<<62 + 4096, 63}, {math.MaxInt64, 63},
	} {
		var h Histogram
		h.Record(c.v)
		if h.Counts[c.bucket] != 1 || h.Count() != 1 {
			t.Errorf("%d is not in bucket %d alone: %v", c.v, c.bucket, h.Counts)
		}
		if v := float64(c.v); v > Limit(c.bucket) || c.bucket > 0 && v <= Limit(c.bucket-1) {
			t.Errorf("%d is not between the limits of bucket %d, %g and %g", c.v, c.bucket, Limit(c.bucket-1), Limit(c.bucket))
		}
		if want := float64(max(c.v, 0)); h.Sum != want {
			t.Errorf("the sum of %d is %g", c.v, h.Sum)
		}
	}
}

// A quantile is interpolated between the limits of the bucket that contains its rank.
func TestQuantile(t *testing.T) {
	var h, before Histogram
	if q := h.Quantile(0.5); q != 0 {
		t.Errorf("the median of an empty histogram is %g", q)
	}
	h.Record(3)
	before = h
	for range 9 {
		h.Record(1000)
	}
	h.Record(5000)
	since := h.Since(&before)
	if q := since.Quantile(0.5); q != 512+512*5/9.0 {
		t.Errorf("the median is %g", q)
	}
	if q := since.Quantile(1); q != 8192 || since.Sum != 14000 {
		t.Errorf("the maximum is %g, the sum %g", q, since.Sum)
	}
	if again := before.Since(&h); again != before {
		t.Errorf("a new histogram has %v since the replaced one", again)
	}
}

func TestRecordAllocs(t *testing.T) {
	var h Histogram
	if n := testing.AllocsPerRun(100, func() { h.Record(12345) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
