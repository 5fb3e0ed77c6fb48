package load

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

func TestByCommand(t *testing.T) {
	addr := startResponder(t)
	for mix, want := range map[Mix]string{PutReserveDelete: "delete put reserve", Wake: "reserve"} { // Wake times no other
		r, err := Run(t.Context(), Options{Addr: addr, Mix: mix, Connections: 3, Ops: 30, ByCommand: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(r.ByCommand)), " "); got != want {
			t.Errorf("%s: commands %q, want %q", mix, got, want)
		}
		total := int64(0)
		for _, l := range r.ByCommand {
			total += l.Count
		}
		if total != r.Latency.Count {
			t.Errorf("%s: %d commands timed by themselves, %d in all", mix, total, r.Latency.Count)
		}
	}
	r, err := Run(t.Context(), Options{Addr: addr, Ops: 3})
	if err != nil || r.ByCommand != nil {
		t.Errorf("%v, %v without being asked", r.ByCommand, err)
	}
}

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
			tl.record(wire.Put, latency)
		}
		if tt.pace == 0 {
			tl.record(wire.Put, 500)
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
