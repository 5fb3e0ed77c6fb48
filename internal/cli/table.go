package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A column of a table.
type column struct {
	title  string
	number bool // aligned to the right
}

// printTable prints rows below the titles of their columns.
func (s *session) printTable(columns []column, rows [][]string) error {
	widths := make([]int, len(columns))
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	rows = append([][]string{titles}, rows...)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if columns[i].number {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		if _, err := fmt.Fprintln(s.out, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}
