package load

import "testing"

func TestPace(t *testing.T) {
	for _, tt := range []struct {
		pace  int64
		count int64 // of recorded latencies
		p50   int64
	}{
		{0, 3, 500},
		{100_000, 3 + 2*9, 500_000}, // of each millisecond: 1000, 900, ... 100 us
		{600_000, 3, 1_000_000},     // 400 us is below the pace
	} {
		tl := tally{hist: newHistogram(), pace: tt.pace}
		for _, latency := range []int64{500, 1_000_000, 1_000_000} {
			tl.record(latency)
		}
		if tt.pace == 0 {
			tl.record(500)
			tt.count++
		}
		tl.flush()
		if n := tl.hist.TotalCount(); n != tt.count {
			t.Errorf("pace %d: %d latencies, want %d", tt.pace, n, tt.count)
		}
		if p50 := tl.hist.ValueAtPercentile(50); !tl.hist.ValuesAreEquivalent(p50, tt.p50) {
			t.Errorf("pace %d: p50 %d, want %d", tt.pace, p50, tt.p50)
		}
	}
}
