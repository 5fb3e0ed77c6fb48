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
	if o.Workers > 0 {
		s = fmt.Sprintf("%s, %s, %s on one tube", o.Mix, plural(o.Connections, "producer"), plural(o.Workers, "worker"))
	} else if o.Tubes > 1 && o.Mix != Wake {
		s += ", " + plural(o.Tubes, "tube")
	}
	s += fmt.Sprintf(", %d-byte bodies", o.BodySize)
	if o.Occupied > 0 {
		s += fmt.Sprintf(", beside %s with a job", plural(o.Occupied, "tube"))
	}
	if o.Idle > 0 {
		s += fmt.Sprintf(", beside %s", plural(o.Idle, "idle connection"))
	}
	return s
}

// String is "1.23 (1.20..1.31)", or "-" if there is no ratio.
func (r Ratio) String() string {
	return orDash(r, func(r Ratio) string { return fmt.Sprintf("%s (%s)", factor(r.Median), r.spread()) })
}

func (r Ratio) spread() string { return factor(r.Min) + ".." + factor(r.Max) }

// factor prints a ratio with two or three digits that say something.
func factor(f float64) string {
	switch {
	case f < 0.1:
		return fmt.Sprintf("%.3f", f)
	case f < 10:
		return fmt.Sprintf("%.2f", f)
	}
	return fmt.Sprintf("%.1f", f)
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
	fmt.Fprintln(t, "\tcommands/s\tp50\tp99\tp99.9\tCPU per command\tpeak RSS\t")
	for _, s := range c.sides() {
		if s.Baseline != nil {
			s.Baseline.writeRow(t, s.Name+", baseline")
		}
		s.writeRow(t, s.Name)
	}
	c.ToA.writeRows(t, c.B.Name+"/"+c.A.Name)
	if c.ToResponder != nil {
		c.ToResponder.writeRows(t, c.B.Name+"/"+c.Responder.Name)
	}
	for _, s := range c.sides() {
		if s.ToBaseline != nil {
			s.ToBaseline.writeRows(t, s.Name+"/baseline")
		}
	}
	t.Flush() // a Builder takes everything
	if c.Baseline != "" {
		fmt.Fprintf(&sb, "baseline: %s\n", c.Baseline)
	}
	for _, s := range c.sides() {
		if s.CrowdEach != 0 {
			fmt.Fprintf(&sb, "%s: RSS %s for each of the crowd\n", s.Name, bytesEach(s.CrowdEach))
		}
		if s.LeftOut != "" {
			fmt.Fprintf(&sb, "%s was left out: %s\n", s.Name, s.LeftOut)
		}
	}
	_, err := io.WriteString(w, sb.String())
	return err
}

// sides returns A, B and, if there is one, the responder.
func (c *Comparison) sides() []*Side {
	all := []*Side{&c.A, &c.B}
	if c.Responder != nil {
		all = append(all, c.Responder)
	}
	return all
}

func (s *Side) writeRow(w io.Writer, name string) {
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", name, orDash(s.Throughput, thousands),
		orDash(s.P50, micros), orDash(s.P99, micros), orDash(s.P999, micros),
		orDash(s.CPUPerCommand, micros), orDash(s.PeakRSS, mebibytes))
}

func (r *Ratios) writeRows(w io.Writer, name string) {
	all := []Ratio{r.Throughput, r.P50, r.P99, r.P999, r.CPUPerCommand}
	fmt.Fprint(w, name)
	for _, one := range all {
		fmt.Fprintf(w, "\t%s", orDash(one, func(r Ratio) string { return factor(r.Median) }))
	}
	fmt.Fprint(w, "\t\nfrom..to")
	for _, one := range all {
		fmt.Fprintf(w, "\t%s", orDash(one, Ratio.spread))
	}
	fmt.Fprint(w, "\t\n")
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
