package kit

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
)

// A Column of a table.
type Column struct {
	Title  string
	Number bool // aligned to the right
	Least  int  // how narrow it may become, so that the table fits the terminal; 0: it does not
}

// cutAt returns how wide lines may be; 0: as wide as they like, for a program may read
// them.
func cutAt() int {
	if !term.IsTerminal(os.Stdout.Fd()) {
		return 0
	}
	width, _, err := term.GetSize(os.Stdout.Fd())
	if err != nil {
		return 0
	}
	return width
}

// PrintTable prints rows below the titles of their columns.
func PrintTable(w io.Writer, columns []Column, rows [][]string) error {
	for _, line := range tableLines(columns, rows, cutAt()) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// tableLines lays a table out. If it is to be no wider than most, the columns that may
// become narrow do, and what is still too long is cut.
func tableLines(columns []Column, rows [][]string, most int) []string {
	widths := make([]int, len(columns))
	titles := make([]string, len(columns))
	total := 2 * (len(columns) - 1)
	for i, c := range columns {
		titles[i] = c.Title
	}
	rows = append([][]string{titles}, rows...)
	for i := range columns {
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
		total += widths[i]
	}
	for i := len(columns) - 1; i >= 0 && most > 0 && total > most; i-- {
		if least := max(columns[i].Least, len(columns[i].Title)); columns[i].Least > 0 && widths[i] > least {
			fit := max(least, widths[i]-(total-most))
			total -= widths[i] - fit
			widths[i] = fit
		}
	}
	lines := make([]string, len(rows))
	for r, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			cell = ansi.Truncate(cell, widths[i], "…")
			pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
			if columns[i].Number {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		lines[r] = strings.TrimRight(line.String(), " ")
		if most > 0 {
			lines[r] = strings.TrimRight(ansi.Truncate(lines[r], most, ""), " ")
		}
	}
	return lines
}
