package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// A table is rows of cells, the first of them the head.
type table [][]string

func (t table) markdown(sb *strings.Builder) {
	for i, cells := range t {
		fmt.Fprintf(sb, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			fmt.Fprintf(sb, "|---|%s\n", strings.Repeat("---:|", len(cells)-1))
		}
	}
}

// WriteMarkdown writes the reports as Markdown: those on loads as rows of the same
// tables, each other one as a section with a table of its own.
func WriteMarkdown(w io.Writer, reports []Report) error {
	var sb strings.Builder
	var rows []*Report
	for i := range reports {
		if r := &reports[i]; r.Title == "" {
			rows = append(rows, r)
		}
	}
	writeRows(&sb, rows)
	for i := range reports {
		r := &reports[i]
		if r.Title != "" {
			fmt.Fprintf(&sb, "\n### %s: %s\n\n", r.Name, r.Title)
			r.table().markdown(&sb)
		}
		for side, why := range r.LeftOut {
			if why != "" {
				fmt.Fprintf(&sb, "\n%s: %s was left out: %s\n", r.Name, r.Servers[side], why)
			}
		}
	}
	_, err := io.WriteString(w, strings.TrimPrefix(sb.String(), "\n"))
	return err
}

// table has a row for each figure.
func (r *Report) table() table {
	withResponder := r.Servers[sideResponder] != ""
	head := []string{"median (min..max)", r.Servers[sideA], r.Servers[sideB], "ratio"}
	if withResponder {
		head = append(head, r.Servers[sideResponder], "ratio to it")
	}
	t := table{head}
	for i := range r.Figures {
		f := &r.Figures[i]
		row := []string{f.Name, f.Servers[sideA].format(f.Unit.Format), f.Servers[sideB].format(f.Unit.Format), f.ToA.format(load.Factor)}
		if withResponder {
			row = append(row, f.Servers[sideResponder].format(f.Unit.Format), f.ToResponder.format(load.Factor))
		}
		t = append(t, row)
	}
	return t
}

// writeRows writes two tables of loads: what the servers can do and what that
// costs, and how long clients wait.
func writeRows(sb *strings.Builder, reports []*Report) {
	if len(reports) == 0 {
		return
	}
	for _, figures := range [][]string{{throughput, cpuPerCommand}, {p50, p99, p999, peakRSS}} {
		sb.WriteByte('\n')
		wide(reports, figures).markdown(sb)
	}
}

// wide has a row for each report, with some of the figures: of A, of B, and the
// ratio; for the first figures, which say what a server costs, also the ratio to
// the responder.
func wide(reports []*Report, figures []string) table {
	first := reports[0]
	withResponder := first.Servers[sideResponder] != "" && figures[0] == throughput
	head := []string{"load"}
	for _, name := range figures {
		head = append(head, first.Servers[sideA]+", "+name, first.Servers[sideB], "ratio")
		if withResponder {
			head = append(head, "to the responder")
		}
	}
	t := table{head}
	for _, r := range reports {
		row := []string{r.Name}
		for _, name := range figures {
			f := r.figure(name)
			row = append(row, f.Servers[sideA].median(f.Unit.Format), f.Servers[sideB].median(f.Unit.Format), f.ToA.format(load.Factor))
			if withResponder {
				row = append(row, f.ToResponder.format(load.Factor))
			}
		}
		t = append(t, row)
	}
	return t
}

// A Measured is the first line of a file that Save has written.
type Measured struct {
	On string `json:"on"` // the machine
}

// Machine describes this machine in a line.
func Machine() string {
	model := ""
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if cpus, err := fs.CPUInfo(); err == nil && len(cpus) > 0 && cpus[0].ModelName != "" {
			model = " of " + cpus[0].ModelName
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%s%s, Linux %s %s, %s", load.Plural(runtime.NumCPU(), "core"), model, bytes.TrimSpace(kernel), runtime.GOARCH, runtime.Version())
}

// Save writes values, such as reports, to a file: as JSON, each on a line of its own, after a line
// that describes this machine. A file that is there is replaced as a whole.
func Save[T any](path string, values []T) error {
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	err := enc.Encode(Measured{Machine()})
	for i := range values {
		err = errors.Join(err, enc.Encode(values[i]))
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", lines.Bytes(), 0o644); err != nil { // #nosec G306 -- measurements are for everybody
		return err
	}
	return os.Rename(path+".new", path)
}
