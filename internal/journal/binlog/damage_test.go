package binlog

import (
	"bytes"
	"slices"
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
		f := report.Files[0]
		if n == 0 { // not even the header
			if f.Version != 0 || f.Stopped != nil || report.Damaged() {
				t.Errorf("cut at %d: %+v", cut, f)
			}
			continue
		}
		if f.Records != records || f.Read != int64(b.ends[n-1]) {
			t.Errorf("cut at %d: %d records and %d bytes, want %d and %d", cut, f.Records, f.Read, records, b.ends[n-1])
		}
		// A short record begins with zeros, which are no sign of a record.
		rest := b.bytes[b.ends[n-1]:cut]
		inRecord := len(bytes.Trim(rest, "\x00")) > 0
		switch {
		case inRecord != (f.Stopped != nil):
			t.Errorf("cut at %d: stopped: %v", cut, f.Stopped)
		case inRecord && f.Stopped.Offset != f.Read:
			t.Errorf("cut at %d: stopped at %d, want %d", cut, f.Stopped.Offset, f.Read)
		}
	}
}

func withoutLast(changes []engine.Change) []engine.Change {
	return slices.DeleteFunc(changes, func(c engine.Change) bool { return c.Kind == engine.LastID })
}
