package load

import "testing"

// Targets are met from their limits on, and not by what was not measured.
func TestTargets(t *testing.T) {
	ratio := func(v float64) Ratio { return Ratio{Median: v} }
	c := Comparison{A: Side{Name: "old"}, B: Side{Name: "new", CrowdEach: 1024}}
	c.ToA = Ratios{Throughput: ratio(1.2), P50: ratio(1), P99: ratio(1.6), CPUPerCommand: ratio(0.5)}
	for _, tt := range []struct {
		goal               Goal
		responder, without float64
		want               Target
	}{
		{atLeast(1.2), 0, 0, Target{"commands/s >= 1.20 times old's", "1.20", true}},
		{atLeast(1.3), 0, 0, Target{"commands/s >= 1.30 times old's", "1.20", false}},
		{atLeast(1.3), 0.96, 0, Target{"commands/s >= 1.30 times old's, or 0.95 times the responder's", "1.20, 0.96", true}},
		{atLeast(1.3), 0.9, 0, Target{"commands/s >= 1.30 times old's, or 0.95 times the responder's", "1.20, 0.90", false}},
		{atMost("p50", 1, p50Of), 0, 0, Target{"p50 <= 1.00 times old's", "1.00", true}},
		{atMost("p99", 1.5, p99Of), 0, 0, Target{"p99 <= 1.50 times old's", "1.60", false}},
		{atMost("CPU", 0.8, cpuOf), 0, 0, Target{"CPU <= 0.80 times old's", "0.50", true}},
		{leanAs(1.15), 0, 0, Target{"CPU per command <= 1.15 times the responder's", "0.00", false}},
		{leanAs(1.15), 1, 0, Target{"CPU per command <= 1.15 times the responder's", "1.00", true}},
		{keeps(0.9), 0, 0.95, Target{"commands/s >= 0.90 times those without", "0.95", true}},
		{keeps(0.9), 0, 0.5, Target{"commands/s >= 0.90 times those without", "0.50 (the responder: 0.55)", false}},
		{keeps(0.9), 0, 0, Target{"commands/s >= 0.90 times those without", "0.00", false}},
		{smallEach(8 << 10), 0, 0, Target{"memory for each <= 8.0 KiB", "1.0 KiB", true}},
		{smallEach(512), 0, 0, Target{"memory for each <= 512 B", "1.0 KiB", false}},
	} {
		c.ToResponder, c.Responder, c.B.ToBaseline = nil, nil, nil
		if tt.responder > 0 {
			c.ToResponder = &Ratios{Throughput: ratio(tt.responder), CPUPerCommand: ratio(tt.responder)}
		}
		if tt.without > 0 {
			c.B.ToBaseline = &Ratios{Throughput: ratio(tt.without)}
			c.Responder = &Side{ToBaseline: &Ratios{Throughput: ratio(tt.without * 1.1)}}
		}
		if got := tt.goal(&c); got != tt.want {
			t.Errorf("%+v, want %+v", got, tt.want)
		}
	}
}
