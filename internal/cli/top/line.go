package top

import (
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// A line is a line of text that is being typed. Text is added and taken away at its end
// only, which is enough for a filter.
type line struct {
	text   string
	typing bool
}

// key adds what a key stands for, or takes away.
func (l *line) key(k tea.KeyPressMsg) {
	switch k.String() {
	case "backspace", "ctrl+h":
		runes := []rune(l.text)
		l.text = string(runes[:max(len(runes)-1, 0)])
	case "ctrl+w":
		words := strings.TrimRight(l.text, " ")
		l.text = words[:strings.LastIndex(words, " ")+1]
	case "ctrl+u":
		l.text = ""
	default:
		l.add(k.Text)
	}
}

// add adds text that was typed or pasted, but for what cannot be seen in it.
func (l *line) add(text string) {
	for _, r := range text {
		if unicode.IsGraphic(r) {
			l.text += string(r)
		}
	}
}
