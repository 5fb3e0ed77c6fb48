package load

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"time"
)

// A Record is one line of a benchmark history: what a Comparison came to, on
// which machine. Figures of different machines, or of the same one in another
// week, are not to be compared; the ratios may be.
type Record struct {
	When     time.Time
	Version  string // of B, with its commit
	Machine  Machine
	Scenario string
	A, B     string // names

	CommandsA, CommandsB float64 // a second, medians
	B2A                  Ratios
	Ceiling              float64 // B's throughput to the responder's; 0 if that was not run
	RSS                  int64   // of B at its peak, in bytes
}

// HistoryHeader is the first line of a history, which is a CSV file.
var HistoryHeader = []string{
	"date", "version", "machine", "scenario", "compared with", "commands/s of that", "commands/s",
	"ratio", "to the responder", "ratio of CPU per command", "ratio of p50", "ratio of p99", "peak RSS, bytes",
}

// RecordOf sums a comparison up. What was left out has no figures, which are 0.
func RecordOf(c *Comparison, m Machine, version string, when time.Time) Record {
	r := Record{
		When: when, Version: version, Machine: m, Scenario: c.Name, A: c.A.Name, B: c.B.Name,
		CommandsA: c.A.Throughput, CommandsB: c.B.Throughput, B2A: c.ToA, RSS: c.B.PeakRSS,
	}
	if c.ToResponder != nil {
		r.Ceiling = c.ToResponder.Throughput.Median
	}
	return r
}

// WriteHistory writes lines of a history, without the header.
func WriteHistory(w io.Writer, records ...Record) error {
	out := csv.NewWriter(w)
	for _, r := range records {
		out.Write([]string{
			r.When.UTC().Format(time.DateOnly), r.Version, r.Machine.String(), r.Scenario, r.A,
			strconv.FormatFloat(r.CommandsA, 'f', 0, 64), strconv.FormatFloat(r.CommandsB, 'f', 0, 64),
			significant(r.B2A.Throughput.Median), significant(r.Ceiling), significant(r.B2A.CPUPerCommand.Median),
			significant(r.B2A.P50.Median), significant(r.B2A.P99.Median), strconv.FormatInt(r.RSS, 10),
		}) // an error sticks until Error
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("load: history: %w", err)
	}
	return nil
}

// significant prints a ratio with three digits, or nothing if there is none.
func significant(ratio float64) string {
	if ratio == 0 {
		return ""
	}
	return strconv.FormatFloat(ratio, 'g', 3, 64)
}
