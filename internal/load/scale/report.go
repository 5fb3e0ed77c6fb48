package scale

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/beanpole-mq/beanpole/internal/load"
)

// A Report is what an experiment found.
type Report struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	A       string   `json:"a"` // names of the servers
	B       string   `json:"b"`
	Rounds  int      `json:"rounds"`
	Figures []Figure `json:"figures"`
}

// A Figure is one line of a report.
type Figure struct {
	Name   string  `json:"name"`
	Unit   Unit    `json:"unit"`
	A      Series  `json:"a"`
	B      Series  `json:"b"`
	Ratio  Series  `json:"ratio"` // B/A of each round; empty where that says nothing
	Target *Target `json:"target,omitempty"`
	Met    *bool   `json:"target_met,omitempty"` // nil if there is none, or it is unknown
}

func newReport(e *experiment, o *Options, a, b load.Server) Report {
	r := Report{Name: e.name, Title: e.title(o), A: a.DisplayName(), B: b.DisplayName(), Rounds: o.Rounds}
	for _, f := range e.figures {
		r.Figures = append(r.Figures, Figure{Name: f.name, Unit: f.unit, Target: f.target})
	}
	return r
}

// add adds what a trial of A (side 0) or B found.
func (r *Report) add(side int, values map[string]float64) {
	for i := range r.Figures {
		f := &r.Figures[i]
		v, known := values[f.Name]
		if side == 0 {
			f.A.add(v, known)
		} else {
			f.B.add(v, known)
		}
	}
}

func (r *Report) sum() {
	for i := range r.Figures {
		r.Figures[i].sum()
	}
}

func (f *Figure) sum() {
	f.A.sum()
	f.B.sum()
	if f.Unit.comparable() {
		f.Ratio = quotients(&f.B, &f.A)
		f.Ratio.sum()
	}
	if f.Target == nil {
		return
	}
	judged := &f.B
	if f.Target.OfRatio {
		judged = &f.Ratio
	}
	if judged.Spread != nil {
		met := judged.Median <= f.Target.AtMost
		f.Met = &met
	}
}

// cells are those of a row: the name, A, B, their ratio, the target.
func (f *Figure) cells() []string {
	return []string{
		f.Name,
		f.A.format(f.Unit.format),
		f.B.format(f.Unit.format),
		f.Ratio.format(func(v float64) string { return fmt.Sprintf("%.2f", v) }),
		f.verdict(),
	}
}

// verdict is the target, and whether the median meets it.
func (f *Figure) verdict() string {
	if f.Target == nil {
		return "-"
	}
	s := "<= " + f.Unit.format(f.Target.AtMost)
	if f.Target.OfRatio {
		s = fmt.Sprintf("ratio <= %.2f", f.Target.AtMost)
	}
	switch {
	case f.Met == nil:
		return s + ": unknown"
	case *f.Met:
		return s + ": met"
	}
	return s + ": missed"
}

// WriteMarkdown writes the reports as sections with a table each.
func WriteMarkdown(w io.Writer, reports []Report) error {
	var sb strings.Builder
	for i := range reports {
		r := &reports[i]
		if i > 0 {
			sb.WriteByte('\n')
		}
		fmt.Fprintf(&sb, "### %s: %s\n\n", r.Name, r.Title)
		for j, cells := range r.rows() {
			fmt.Fprintf(&sb, "| %s |\n", strings.Join(cells, " | "))
			if j == 0 {
				fmt.Fprintf(&sb, "|%s\n", strings.Repeat("---|", len(cells)))
			}
		}
	}
	_, err := io.WriteString(w, sb.String())
	return err
}

// WriteTable writes the reports for people.
func WriteTable(w io.Writer, reports []Report) error {
	for i := range reports {
		r := &reports[i]
		fmt.Fprintf(w, "%s: %s\n", r.Name, r.Title)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, cells := range r.rows() {
			fmt.Fprintf(t, "  %s\n", strings.Join(cells, "\t"))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Report) rows() [][]string {
	rows := [][]string{{"median (min..max)", r.A, r.B, "ratio", "target"}}
	for i := range r.Figures {
		rows = append(rows, r.Figures[i].cells())
	}
	return rows
}
