package load

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// describe names a load in a few words.
func (o *Options) describe() string {
	s := fmt.Sprintf("%s, %s, %d in flight", o.Mix, plural(o.Connections, "connection"), o.InFlight)
	if o.Tubes > 1 && o.Mix != Wake {
		s += ", " + plural(o.Tubes, "tube")
	}
	return s + fmt.Sprintf(", %d-byte bodies", o.BodySize)
}

// String is "1.23 (1.20..1.31)", or "-" if there is no ratio.
func (r Ratio) String() string {
	if r == (Ratio{}) {
		return "-"
	}
	return fmt.Sprintf("%.2f (%.2f..%.2f)", r.Median, r.Min, r.Max)
}

// orDash prints a figure that is 0 when unknown.
func orDash[T comparable](figure T, print func(T) string) string {
	var unknown T
	if figure == unknown {
		return "-"
	}
	return print(figure)
}

// WriteTable writes c for people: a line for each server, then the ratios.
func (c *Comparison) WriteTable(w io.Writer) error {
	var sb strings.Builder
	fmt.Fprintln(&sb, c.Name)
	t := tabwriter.NewWriter(&sb, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tcommands/s\tp50\tp99\tCPU per command\tpeak RSS\t")
	for _, s := range []*Side{&c.A, &c.B} {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t\n", s.Name, thousands(s.Throughput),
			micros(s.P50), micros(s.P99), orDash(s.CPUPerCommand, micros), orDash(s.PeakRSS, mebibytes))
	}
	fmt.Fprintf(t, "ratio\t%.2f\t%.2f\t%.2f\t%.2f\t\n",
		c.Throughput.Median, c.P50.Median, c.P99.Median, c.CPUPerCommand.Median)
	fmt.Fprintf(t, "from..to\t%s\t%s\t%s\t%s\t\n", c.Throughput.spread(), c.P50.spread(), c.P99.spread(), c.CPUPerCommand.spread())
	t.Flush() // a Builder takes everything
	fmt.Fprintf(&sb, "ceiling of the generator: %s\n", c.ceiling())
	_, err := io.WriteString(w, sb.String())
	return err
}

func (r Ratio) spread() string { return fmt.Sprintf("%.2f..%.2f", r.Min, r.Max) }

func (c *Comparison) ceiling() string {
	if c.Ceiling == nil {
		return "not measured"
	}
	return fmt.Sprintf("%s commands/s, %s CPU per command",
		thousands(c.Ceiling.Throughput), orDash(cpuPerCommand(c.Ceiling), micros))
}

// WriteMarkdown writes the machine and a table with a row for each comparison,
// all of the same two servers.
func WriteMarkdown(w io.Writer, m Machine, all []Comparison) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, m)
		return err
	}
	a, b := all[0].A.Name, all[0].B.Name
	columns := []string{
		"scenario", a + ", commands/s", b + ", commands/s", "ratio (min..max)",
		"CPU per command " + a, b, "ratio", "p50 " + a, b, "p99 " + a, b, "peak RSS " + a, b, "ceiling, commands/s",
	}
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s\n\n", m)
	row := func(cells ...string) { fmt.Fprintf(&sb, "| %s |\n", strings.Join(cells, " | ")) }
	row(columns...)
	fmt.Fprintf(&sb, "|%s\n", strings.Repeat("---|", len(columns)))
	for i := range all {
		row(all[i].markdownCells()...)
	}
	_, err := io.WriteString(w, sb.String())
	return err
}

func (c *Comparison) markdownCells() []string {
	ceiling := "-"
	if c.Ceiling != nil {
		ceiling = thousands(c.Ceiling.Throughput)
	}
	return []string{
		c.Name, thousands(c.A.Throughput), thousands(c.B.Throughput), c.Throughput.String(),
		orDash(c.A.CPUPerCommand, micros), orDash(c.B.CPUPerCommand, micros), c.CPUPerCommand.String(),
		micros(c.A.P50), micros(c.B.P50), micros(c.A.P99), micros(c.B.P99),
		orDash(c.A.PeakRSS, mebibytes), orDash(c.B.PeakRSS, mebibytes), ceiling,
	}
}

// WriteJSONLines writes each value, such as a Machine, a Result or a
// Comparison, as JSON on a line of its own.
func WriteJSONLines[T any](w io.Writer, values ...T) error {
	enc := json.NewEncoder(w)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			return err
		}
	}
	return nil
}
