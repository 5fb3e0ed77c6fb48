package top

import (
	"testing"

	tea "github.com/charmbracelet/bubbletea"
)

func TestLine(t *testing.T) {
	typed := func(text string) tea.KeyMsg { return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text)} }
	key := func(k tea.KeyType) tea.KeyMsg { return tea.KeyMsg{Type: k} }
	var l line
	for _, step := range []struct {
		key  tea.KeyMsg
		want string
	}{
		{typed("m"), "m"},
		{typed("äil\x1b\n"), "mäil"},
		{tea.KeyMsg{Type: tea.KeySpace, Runes: []rune(" ")}, "mäil "},
		{typed("two"), "mäil two"},
		{key(tea.KeyLeft), "mäil two"},
		{key(tea.KeyCtrlW), "mäil "},
		{key(tea.KeyBackspace), "mäil"},
		{key(tea.KeyBackspace), "mäi"},
		{key(tea.KeyCtrlW), ""},
		{key(tea.KeyBackspace), ""},
		{typed("x"), "x"},
		{key(tea.KeyCtrlU), ""},
	} {
		if l.key(step.key); l.text != step.want {
			t.Errorf("after %q: %q, want %q", step.key, l.text, step.want)
		}
	}
}
