package cliutil

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"testing"
)

// Texts from users and workers are printed without control characters, line breaks and
// invalid UTF-8.
func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "",
		"grün, 日本 \\ \"x\"":   "grün, 日本 \\ \"x\"",
		"\x1b[31mred\x07":     `\x1b[31mred\a`,
		"a\r\nb\x7f\u0085":    `a\r\nb\x7f\u0085`,
		"\u202eright to left": `\u202eright to left`,
		"\x9b31m\ufffd":       `\x9b31m` + "\ufffd",
	} {
		if got := Line(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var out, notes bytes.Buffer
	bad := "\x1b]0;title\x07"
	s := &Session{Out: bufio.NewWriter(&out), Err: &notes}
	s.Print(nil, "%s %v", bad, errors.New(bad))
	s.Note("warning: %s", bad)
	PrintTable(s.Out, "A B", [][]any{{bad, bad}})
	s.Out.Flush()
	if text := out.String() + notes.String(); strings.ContainsAny(text, "\x1b\x07") || strings.Count(text, `\x1b]0;title\a`) != 5 {
		t.Errorf("%q", text)
	}
}
