package load

import (
	"testing"
	"time"
)

func TestRecorder(t *testing.T) {
	r := NewRecorder()
	if l := r.Latency(); l != (Latency{}) {
		t.Errorf("without a latency: %+v", l)
	}
	for i := range 1000 {
		r.Record(time.Duration(i+1) * time.Microsecond)
	}
	r.Record(-1)        // the clock went back
	r.Record(time.Hour) // beyond the range of the histogram
	l := r.Latency()
	if l.Count != 1002 || l.Max < time.Minute || l.Max > 61*time.Second {
		t.Errorf("%d latencies, the longest %v", l.Count, l.Max)
	}
	if !r.histogram.ValuesAreEquivalent(int64(l.P99), int64(991*time.Microsecond)) {
		t.Errorf("p99 %v", l.P99)
	}
}
