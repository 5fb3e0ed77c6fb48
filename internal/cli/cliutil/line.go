package cliutil

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Line returns a text as one line for a terminal. It replaces line breaks, control
// characters, and bytes that are not UTF-8 with escapes such as \x1b, because text from
// users, workers and servers must not control the terminal.
func Line(text string) string {
	var b strings.Builder
	for rest := text; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		if strconv.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			b.WriteString(rest[:n])
		} else {
			escaped := strconv.Quote(rest[:n])
			b.WriteString(escaped[1 : len(escaped)-1])
		}
		rest = rest[n:]
	}
	return b.String()
}

// lines applies Line to the texts among the arguments of a format.
func lines(args []any) []any {
	safe := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			safe[i] = Line(arg)
		case error:
			safe[i] = Line(arg.Error())
		default:
			safe[i] = arg
		}
	}
	return safe
}
