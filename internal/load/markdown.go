package load

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteMarkdown writes the machine and tables with a row for each comparison,
// all of the same two servers. Comparisons with a baseline have a table of
// their own, after the others. What tables have no room for is in the JSON.
func WriteMarkdown(w io.Writer, m Machine, all []Comparison) error {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s\n", m)
	var plain, crowded []Comparison
	for _, c := range all {
		if c.Baseline == "" {
			plain = append(plain, c)
		} else {
			crowded = append(crowded, c)
		}
	}
	if len(plain) > 0 {
		writeThroughput(&sb, plain)
		writeLatency(&sb, plain)
	}
	if len(crowded) > 0 {
		writeCrowded(&sb, crowded)
	}
	writeLeftOut(&sb, all)
	writeTargets(&sb, all)
	_, err := io.WriteString(w, sb.String())
	return err
}

// writeHead begins a table: so many columns of text, the others of figures.
func writeHead(sb *strings.Builder, text int, columns ...string) {
	sb.WriteByte('\n')
	writeCells(sb, columns...)
	fmt.Fprintf(sb, "|%s%s\n", strings.Repeat("---|", text), strings.Repeat("---:|", len(columns)-text))
}

func writeCells(sb *strings.Builder, cells ...string) {
	fmt.Fprintf(sb, "| %s |\n", strings.Join(cells, " | "))
}

// writeThroughput writes what the servers can do, and what that costs.
func writeThroughput(sb *strings.Builder, all []Comparison) {
	a, b := all[0].A.Name, all[0].B.Name
	responder := slices.ContainsFunc(all, func(c Comparison) bool { return c.ToResponder != nil })
	columns := []string{"scenario", a + ", commands/s", b, "to " + a, a + ", CPU per command", b, "to " + a}
	if responder {
		columns = slices.Insert(columns, 7, "to the responder")
		columns = slices.Insert(columns, 4, "to the responder")
	}
	writeHead(sb, 1, columns...)
	for _, c := range all {
		cells := []string{
			c.Name, orDash(c.A.Throughput, thousands), orDash(c.B.Throughput, thousands), c.ToA.Throughput.String(),
			orDash(c.A.CPUPerCommand, micros), orDash(c.B.CPUPerCommand, micros), c.ToA.CPUPerCommand.String(),
		}
		if responder {
			var to Ratios
			if c.ToResponder != nil {
				to = *c.ToResponder
			}
			cells = slices.Insert(cells, 7, to.CPUPerCommand.String())
			cells = slices.Insert(cells, 4, to.Throughput.String())
		}
		writeCells(sb, cells...)
	}
}

// writeLatency writes how long clients wait, and what the servers hold.
func writeLatency(sb *strings.Builder, all []Comparison) {
	a, b := all[0].A.Name, all[0].B.Name
	writeHead(sb, 1, "scenario", a+", p50", b, "to "+a, a+", p99", b, "to "+a, a+", p99.9", b, a+", peak RSS", b)
	for _, c := range all {
		writeCells(sb, c.Name,
			orDash(c.A.P50, micros), orDash(c.B.P50, micros), c.ToA.P50.String(),
			orDash(c.A.P99, micros), orDash(c.B.P99, micros), c.ToA.P99.String(),
			orDash(c.A.P999, micros), orDash(c.B.P999, micros),
			orDash(c.A.PeakRSS, mebibytes), orDash(c.B.PeakRSS, mebibytes))
	}
}

// writeCrowded writes what a crowd changes for each server: a row each.
func writeCrowded(sb *strings.Builder, all []Comparison) {
	writeHead(sb, 2, "scenario", "server", "without, commands/s", "with", "ratio", "without, p99", "with", "ratio", "memory for each")
	for _, c := range all {
		name := fmt.Sprintf("%s (without: %s)", c.Name, c.Baseline)
		for _, s := range c.sides() {
			writeCells(sb, name, s.Name,
				orDash(s.Baseline.Throughput, thousands), orDash(s.Throughput, thousands), s.ToBaseline.Throughput.String(),
				orDash(s.Baseline.P99, micros), orDash(s.P99, micros), s.ToBaseline.P99.String(),
				orDash(s.CrowdEach, bytesEach))
			name = ""
		}
	}
}

// writeTargets writes what was asked of B, and what came of it.
func writeTargets(sb *strings.Builder, all []Comparison) {
	if !slices.ContainsFunc(all, func(c Comparison) bool { return len(c.Targets) > 0 }) {
		return
	}
	writeHead(sb, 2, "scenario", "asked", "got", "")
	for _, c := range all {
		name := c.Name
		for _, t := range c.Targets {
			verdict := "missed"
			if t.Met {
				verdict = "met"
			}
			writeCells(sb, name, t.Asked, t.Got, verdict)
			name = ""
		}
	}
}

func writeLeftOut(sb *strings.Builder, all []Comparison) {
	for i := range all {
		for _, s := range all[i].sides() {
			if s.LeftOut != "" {
				fmt.Fprintf(sb, "\n%s: %s was left out: %s\n", all[i].Name, s.Name, s.LeftOut)
			}
		}
	}
}
