package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/load"
)

// A row is all runs of one contender under one load.
type row struct {
	name    string
	runs    []result // one a round, unless it was left out
	leftOut string   // why there are no more of them; empty: there are
}

// A block is one load on all contenders. What the first did in a round is what
// the others are compared with.
type block struct {
	load string
	rows []row
}

// writeTable writes the blocks as one table, and what was left out below it.
func writeTable(sb *strings.Builder, blocks []block) {
	if len(blocks) == 0 {
		return
	}
	base := blocks[0].rows[0].name
	writeCells(sb, "load", "server", "jobs/s", "to "+base, "p50 of a job", "p99", "CPU per job", "to "+base, "CPU of the client", "peak RSS")
	sb.WriteString("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, b := range blocks {
		label := b.load
		for i := range b.rows {
			if r := &b.rows[i]; len(r.runs) > 0 {
				r.write(sb, label, &b.rows[0])
				label = ""
			}
		}
	}
	writeLeftOut(sb, blocks)
}

func (r *row) write(sb *strings.Builder, label string, base *row) {
	to := func(figure func(*result) float64) string {
		if r == base {
			return "1"
		}
		return ratioOf(r.runs, base.runs, figure).String()
	}
	writeCells(sb, label, r.name,
		thousands(medianOf(r.runs, func(r *result) float64 { return r.Jobs })),
		to(func(r *result) float64 { return r.Jobs }),
		micros(medianOf(r.runs, func(r *result) time.Duration { return r.P50 })),
		micros(medianOf(r.runs, func(r *result) time.Duration { return r.P99 })),
		micros(medianOf(r.runs, func(r *result) time.Duration { return r.ServerCPU })),
		to(func(r *result) float64 { return float64(r.ServerCPU) }),
		micros(medianOf(r.runs, func(r *result) time.Duration { return r.ClientCPU })),
		mebibytes(medianOf(r.runs, func(r *result) int64 { return r.PeakRSS })))
}

// writeLeftOut says each reason once.
func writeLeftOut(sb *strings.Builder, blocks []block) {
	said := map[string]bool{}
	for _, b := range blocks {
		for _, r := range b.rows {
			if line := fmt.Sprintf("%s was left out: %s.", r.name, r.leftOut); r.leftOut != "" && !said[line] {
				said[line] = true
				fmt.Fprintf(sb, "\n%s\n", line)
			}
		}
	}
}

func writeCells(sb *strings.Builder, cells ...string) {
	fmt.Fprintf(sb, "| %s |\n", strings.Join(cells, " | "))
}

func medianOf[T ~int64 | ~float64](runs []result, figure func(*result) T) T {
	all := make([]T, len(runs))
	for i := range runs {
		all[i] = figure(&runs[i])
	}
	return median(all)
}

// median returns the middle of all, or the mean of the two in the middle, or 0.
func median[T ~int64 | ~float64](all []T) T {
	n := len(all)
	if n == 0 {
		return 0
	}
	slices.Sort(all)
	return (all[(n-1)/2] + all[n/2]) / 2
}

// ratioOf divides the figures of runs of the same round.
func ratioOf(runs, base []result, figure func(*result) float64) load.Ratio {
	var all []float64
	for i := range min(len(runs), len(base)) {
		if over, under := figure(&runs[i]), figure(&base[i]); over > 0 && under > 0 {
			all = append(all, over/under)
		}
	}
	if len(all) == 0 {
		return load.Ratio{}
	}
	return load.Ratio{Median: median(all), Min: slices.Min(all), Max: slices.Max(all)}
}

// micros prints d in us, above 10 ms in ms, and "-" if it is unknown.
func micros(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	case d >= 100*time.Microsecond:
		return fmt.Sprintf("%.0f us", float64(d)/1e3)
	}
	return fmt.Sprintf("%.1f us", float64(d)/1e3)
}

func mebibytes(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// thousands prints 1234567.8 as 1,234,568.
func thousands(f float64) string {
	s := fmt.Sprintf("%.0f", f)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
