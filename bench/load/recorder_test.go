package load

import (
	"testing"
	"time"
)

// With a pace, a latency also counts for the commands that were not sent meanwhile.
func TestPace(t *testing.T) {
	for _, tt := range []struct {
		pace  time.Duration
		count int64 // of recorded latencies
		p50   time.Duration
	}{
		{0, 3, time.Millisecond},
		{100 * time.Microsecond, 3 + 2*9, 500 * time.Microsecond}, // of each millisecond: 1000, 900, ... 100 us
		{600 * time.Microsecond, 3, time.Millisecond},             // 400 us is below the pace
	} {
		r := NewRecorder(tt.pace)
		for _, latency := range []time.Duration{500, time.Millisecond, time.Millisecond} {
			r.Record(latency)
		}
		l := r.Latency()
		if l.Count != tt.count {
			t.Errorf("pace %v: %d latencies, want %d", tt.pace, l.Count, tt.count)
		}
		if !r.histogram.ValuesAreEquivalent(int64(l.P50), int64(tt.p50)) {
			t.Errorf("pace %v: p50 %v, want %v", tt.pace, l.P50, tt.p50)
		}
	}
}

func TestRecorder(t *testing.T) {
	r := NewRecorder(0)
	if l := r.Latency(); l != (Latency{}) {
		t.Errorf("without a latency: %+v", l)
	}
	for i := range 1000 {
		r.Record(time.Duration(i+1) * time.Microsecond)
	}
	r.Record(-1)        // a clock that went back
	r.Record(time.Hour) // longer than the histogram goes
	l := r.Latency()
	if l.Count != 1002 || l.Max < time.Minute || l.Max > 61*time.Second {
		t.Errorf("%d latencies, the longest %v", l.Count, l.Max)
	}
	if !r.histogram.ValuesAreEquivalent(int64(l.P99), int64(991*time.Microsecond)) {
		t.Errorf("p99 %v", l.P99)
	}
}
