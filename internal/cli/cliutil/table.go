package cliutil

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
)

// cutAt returns the width of the terminal, or zero if standard output is not a terminal.
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

// PrintTable prints rows below the titles of their columns. Blanks separate the titles.
// Columns of numbers or times are aligned to the right; nil is an empty cell. TITLE:8
// means that the column can be narrowed to 8 characters, so that the table fits the
// terminal.
func PrintTable(w io.Writer, titles string, rows [][]any) error {
	_, err := fmt.Fprintln(w, strings.Join(tableLines(titles, rows, cutAt()), "\n"))
	return err
}

// PrintRows prints a table with a row for each element of all.
func PrintRows[T any](w io.Writer, titles string, all []T, row func(*T) []any) error {
	rows := make([][]any, len(all))
	for i := range all {
		rows[i] = row(&all[i])
	}
	return PrintTable(w, titles, rows)
}

// PrintList prints all as a table or, with --json, as one object per line.
func PrintList[T any](s *Session, all []T, titles string, row func(*T) []any) error {
	if !s.JSON {
		return PrintRows(s.Out, titles, all, row)
	}
	for i := range all {
		if err := s.PrintJSON(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

// tableLines formats a table. If most is positive, it narrows the columns that permit it,
// and truncates lines to the width most.
func tableLines(titles string, rows [][]any, most int) []string {
	var head []any
	var least []int // 0 if the column must not be narrowed
	for title := range strings.FieldsSeq(titles) {
		title, narrow, _ := strings.Cut(title, ":")
		n, _ := strconv.Atoi(narrow)
		head, least = append(head, title), append(least, n)
	}
	rows = append([][]any{head}, rows...)
	widths, right := make([]int, len(head)), make([]bool, len(head))
	total := 2 * (len(head) - 1)
	for i := range head {
		for _, row := range rows {
			if row[i] == nil {
				row[i] = ""
			}
			text, isText := row[i].(string)
			if isText {
				text = Line(text)
				row[i] = text
			} else {
				text, right[i] = fmt.Sprint(row[i]), true
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
		total += widths[i]
	}
	for i := len(head) - 1; i >= 0 && most > 0 && total > most; i-- {
		if narrow := max(least[i], len(head[i].(string))); least[i] > 0 && widths[i] > narrow {
			fit := max(narrow, widths[i]-(total-most))
			total -= widths[i] - fit
			widths[i] = fit
		}
	}
	lines := make([]string, len(rows))
	for r, row := range rows {
		for i, cell := range row {
			text := ansi.Truncate(fmt.Sprint(cell), widths[i], "…")
			if right[i] {
				lines[r] += fmt.Sprintf("%*s  ", widths[i], text)
			} else {
				lines[r] += fmt.Sprintf("%-*s  ", widths[i], text)
			}
		}
		lines[r] = strings.TrimRight(lines[r], " ")
		if most > 0 {
			lines[r] = strings.TrimRight(ansi.Truncate(lines[r], most, ""), " ")
		}
	}
	return lines
}
