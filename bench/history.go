package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"time"
)

// HistoryHeader is the first line of a history. That is a CSV file with a line for each
// load: its figures, and the machine. Do not compare figures of different machines, nor of
// the same one in different weeks; compare ratios.
var HistoryHeader = []string{
	"date", "version", "machine", "scenario", "compared with", "commands/s of that", "commands/s",
	"ratio", "to the responder", "ratio of CPU per command", "ratio of p50", "ratio of p99", "peak RSS, bytes",
}

// WriteHistory writes the lines of a history for those reports that are about
// loads, without the header. Version is that of B, with its commit. What is
// unknown is empty.
func WriteHistory(w io.Writer, reports []Report, m Machine, version string, when time.Time) error {
	out := csv.NewWriter(w)
	for i := range reports {
		r := &reports[i]
		rate := r.figure(throughput)
		if rate.Servers[sideB].Spread == nil {
			continue
		}
		whole := func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }
		cell := func(s *Series, print func(float64) string) string {
			if s.Spread == nil {
				return ""
			}
			return print(s.Median)
		}
		out.Write([]string{ // an error sticks until Error
			when.UTC().Format(time.DateOnly), version, m.String(), r.Name, r.Servers[sideA],
			cell(&rate.Servers[sideA], whole), cell(&rate.Servers[sideB], whole),
			cell(&rate.ToA, significant), cell(&rate.ToResponder, significant),
			cell(&r.figure(cpuPerCommand).ToA, significant),
			cell(&r.figure(p50).ToA, significant), cell(&r.figure(p99).ToA, significant),
			cell(&r.figure(peakRSS).Servers[sideB], whole),
		})
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("bench: history: %w", err)
	}
	return nil
}

// significant prints a ratio with three digits.
func significant(ratio float64) string { return strconv.FormatFloat(ratio, 'g', 3, 64) }
