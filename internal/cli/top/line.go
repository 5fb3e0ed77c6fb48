package top

import (
	"strings"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"
)

// A line is a line of text that is being typed. Text is added and taken away at its end
// only, which is enough for a filter.
type line struct {
	text   string
	typing bool
}

// key adds what a key stands for, or takes away.
func (l *line) key(k tea.KeyMsg) {
	switch k.Type {
	case tea.KeyRunes, tea.KeySpace:
		for _, r := range k.Runes { // many, if they were pasted
			if unicode.IsGraphic(r) {
				l.text += string(r)
			}
		}
	case tea.KeyBackspace, tea.KeyCtrlH:
		runes := []rune(l.text)
		l.text = string(runes[:max(len(runes)-1, 0)])
	case tea.KeyCtrlW:
		words := strings.TrimRight(l.text, " ")
		l.text = words[:strings.LastIndex(words, " ")+1]
	case tea.KeyCtrlU:
		l.text = ""
	}
}
