package top

import (
	"testing"

	tea "charm.land/bubbletea/v2"
)

func TestLine(t *testing.T) {
	typed := func(text string) tea.KeyPressMsg { return tea.KeyPressMsg{Text: text} }
	key := func(key rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: key} }
	var l line
	for _, step := range []struct {
		key  tea.KeyPressMsg
		want string
	}{
		{typed("m"), "m"},
		{typed("äil\x1b\n"), "mäil"},
		{tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}, "mäil "},
		{typed("two"), "mäil two"},
		{key(tea.KeyLeft), "mäil two"},
		{key(tea.KeyBackspace), "mäil tw"},
	} {
		if l.key(step.key); l.text != step.want {
			t.Errorf("after %q: %q, want %q", step.key, l.text, step.want)
		}
	}
}
