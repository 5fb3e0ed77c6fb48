package binlog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// smallLog returns a log with records of all kinds, about 600 bytes.
func smallLog() *builder {
	return build(7).
		full("mail", 1, stateReady, "abc\r\n").
		full("a", 2, stateDelayed, "\r\n").
		short(1, stateBuried).
		full("mail", 3, stateReserved, "0123456789\r\n").
		short(2, stateDeleted).
		full("b", 1, stateBuried, "abc\r\n").
		short(9, stateDelayed)
}

// TestTruncated cuts a log at each byte: Read returns the complete records, and the
// report contains their end.
func TestTruncated(t *testing.T) {
	b := smallLog()
	whole, _ := readChanges(t, dirOf(t, b.bytes))
	for cut := range len(b.bytes) {
		changes, report := readChanges(t, dirOf(t, b.bytes[:cut]))
		n, _ := slices.BinarySearch(b.ends, cut+1) // number of ends up to cut
		records := max(n-1, 0)
		if diff := cmp.Diff(showAll(whole[:records]), showAll(withoutLast(changes))); diff != "" {
			t.Fatalf("cut at %d (- want, + got):\n%s", cut, diff)
		}
		if report.Records != records {
			t.Errorf("cut at %d: %d records, want %d", cut, report.Records, records)
		}
		// A short record begins with zeros, which are no sign of a record.
		var damage []string
		if n > 0 && !isZero(b.bytes[b.ends[n-1]:cut]) {
			damage = []string{fmt.Sprintf("binlog.1 at %d", b.ends[n-1])}
		}
		for i := range report.Damage {
			report.Damage[i], _, _ = strings.Cut(report.Damage[i], ":")
		}
		if !slices.Equal(report.Damage, damage) {
			t.Errorf("cut at %d: damage %q, want %q", cut, report.Damage, damage)
		}
	}
}

func withoutLast(changes []engine.Change) []engine.Change {
	return slices.DeleteFunc(changes, func(c engine.Change) bool { return c.Kind == engine.LastID })
}
